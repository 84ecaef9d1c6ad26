"""This file takes layers from the model's thread and works them off on another: it reduces, rounds and appends.

What waits between the two is bounded in bytes, and a layer above that bound is taken on the model's own thread, so that
no more than one layer's map waits beside the one in work.
"""

import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.format.arrays import Each, MapsWriter
from attnstore.format.manifest import StoreInfo
from attnstore.format.parquet import TableWriter
from attnstore.format.quantise import checked_weights
from attnstore.job.fact_rows import BatchFacts, distance_row, kept_rows
from attnstore.job.keep import KeepMaps
from attnstore.job.rows import Placed
from attnstore.reduce.columns import Columns
from attnstore.reduce.divergence import sampled_rows
from attnstore.reduce.facts import facts
from attnstore.reduce.head_distances import head_distances
from attnstore.reduce.token_masses import TokenMasses, token_masses

COMPILED_WEIGHTS = 2**29
"""Weights of a store from which its facts and rounding are compiled where numba is installed: compiling takes three
seconds, and NumPy ten nanoseconds a weight more. Of the store and not of what is left of it, so that every writer of
one store computes alike."""

TOGETHER_BYTES = 32 * 2**20
"""All layers of a batch are reduced together where they are no larger than this: a short map costs more in calls than
in arithmetic (72 heads of 17 tokens at a time halve the time of the facts)."""

WAITING_BYTES = 24 * 2**20
"""Layers that may wait for the writing thread: two of 16 texts of 128 tokens under 12 heads. One larger than this never
waits."""


def n_weights(info: StoreInfo) -> int:
    """Weights of a planned store: every cell of every layer and head."""
    cells = (item.cells.items() for item in info.segments)
    return sum(n * info.kinds[name].layers * info.kinds[name].heads for own in cells for name, n in own)


class _Batch:
    """What the writing thread gathers of one batch, from its first layer to the last."""

    def __init__(self, placed: Sequence[Placed], info: StoreInfo) -> None:
        self.placed = placed
        masses = "token_masses" in info.facts["tables"]
        self.facts = {name: BatchFacts(name, kind, placed, masses=masses) for name, kind in info.kinds.items()}
        self.together: dict[str, list[list[NDArray[np.float32]]]] = {}
        self.compared: dict[str, list[list[NDArray[np.float32]]]] = {}
        self.kept: dict[tuple[int, str, int], Columns] = {}


@dataclass(slots=True)
class _Layer:
    """One layer's maps [batch, head, query, key] on their way to the writing thread."""

    batch: Sequence[Placed]
    kind: str
    number: int
    weights: NDArray[Any]


class Writer:
    """Takes layers from the model's thread and works them off on its own; the model runs on into its next batch."""

    def __init__(
        self,
        info: StoreInfo,
        keep: KeepMaps,
        maps: MapsWriter | None,
        tables: Mapping[str, TableWriter],
        *,
        compiled: bool,
        each: Each = map,
    ) -> None:
        self.info, self.keep, self.maps, self.tables, self.each = info, keep, maps, tables, each
        self.with_facts = bool(info.facts["tables"])
        self.with_masses = "token_masses" in info.facts["tables"]
        self.distances: Mapping[str, float] = info.facts.get("distances", {})
        self.compiled, self.compares_compiled = compiled, False
        self.batch: _Batch | None = None
        self.error: BaseException | None = None
        self._queue: queue.Queue[_Layer | None] = queue.Queue()
        self._room = threading.Condition()
        self._waiting = 0
        self._thread = threading.Thread(target=self._run, name="attnstore-writer", daemon=True)
        self._thread.start()

    def take(self, batch: Sequence[Placed], kind: str, number: int, weights: NDArray[Any]) -> None:
        """Take one layer's maps [batch, head, query, key] from the model's thread."""
        layer, size = _Layer(batch, kind, number, weights), weights.nbytes
        with self._room:
            # A layer beyond the bound waits until everything before it is done, so that order is kept.
            limit = 0 if size > WAITING_BYTES else WAITING_BYTES - size
            self._room.wait_for(lambda: self._waiting <= limit or self.error is not None)
            if self.error is not None:
                raise self.error
            if size <= WAITING_BYTES:
                self._waiting += size
        if size > WAITING_BYTES:
            self._work(layer)
        else:
            self._queue.put(layer)

    def finish(self) -> None:
        """Wait until every layer is worked off, and write the facts of the last batch."""
        with self._room:
            self._room.wait_for(lambda: self._waiting == 0 or self.error is not None)
        if self.error is not None:
            raise self.error
        self._write_facts()

    def stop(self) -> None:
        """End the thread; what waits is dropped after an error."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (layer := self._queue.get()) is not None:
            size = layer.weights.nbytes
            try:
                if self.error is None:
                    self._work(layer)
            except BaseException as error:  # handed to the model's thread, which raises it
                self.error = error
            del layer
            with self._room:
                self._waiting -= size
                self._room.notify_all()

    def _work(self, layer: _Layer) -> None:
        if self.batch is None or self.batch.placed is not layer.batch:
            self._write_facts()
            self.batch = _Batch(layer.batch, self.info)
        kind, weights = layer.kind, layer.weights
        rows = [item for item in layer.batch if kind in item.frames]
        if not rows:
            return
        maps = []
        for row, item in enumerate(rows):
            frame, doing = item.frames[kind], f"storing {kind} layer {layer.number} of {item.prepared.example.name}"
            own = weights[row, :, : len(frame.queries), : len(frame.keys)]
            maps.append(checked_weights(own, doing) if weights.dtype == np.float32 else own)  # codes were checked
        if self.maps is not None:
            kept = self.keep.append(self.maps, kind, layer.number, maps, [item.frames[kind] for item in rows])
            for item, held in zip(rows, kept, strict=False):  # none where every weight is kept
                self.batch.kept[item.number, kind, layer.number] = held
        if not self.with_facts:
            return
        layers = self.info.kinds[kind].layers
        if self.distances and self.info.kinds[kind].queries == self.info.kinds[kind].keys:
            self._compare(self.batch, kind, rows, maps)
        if weights.nbytes * layers > TOGETHER_BYTES:
            self._reduce(self.batch, kind, slice(layer.number, layer.number + 1), rows, maps)
            return
        together = self.batch.together.setdefault(kind, [])
        together.append(maps)
        if len(together) == layers:
            joined = [np.concatenate(own) for own in zip(*together, strict=True)]
            self._reduce(self.batch, kind, slice(0, layers), rows, joined)
            del self.batch.together[kind]

    def _reduce(
        self,
        batch: _Batch,
        kind: str,
        layers: slice,
        rows: Sequence[Placed],
        maps: Sequence[NDArray[np.float32]],
    ) -> None:
        """The facts of some layers, maps [layer and head, query, key] of each example."""
        parameters = self.info.facts["parameters"]
        frames = [item.frames[kind] for item in rows]
        found = list(self.each(partial(facts, **parameters, compiled=self.compiled), maps, frames))
        masses: list[TokenMasses] = []
        if self.with_masses:
            masses = list(self.each(token_masses, maps, frames))
        batch.facts[kind].take(layers, found, masses)

    def _compare(self, batch: _Batch, kind: str, rows: Sequence[Placed], maps: Sequence[NDArray[np.float32]]) -> None:
        """Hold the rows by which heads are compared, and compare them when the last layer is there."""
        compared = batch.compared.setdefault(kind, [])
        sampled = int(self.distances["sampled"])
        compared.append([own[:, sampled_rows(own.shape[1], sampled)] for own in maps])
        if len(compared) < self.info.kinds[kind].layers:
            return
        for item, own in zip(rows, zip(*batch.compared.pop(kind), strict=True), strict=True):
            found = head_distances(np.concatenate(own), eps=self.distances["eps"], compiled=self.compares_compiled)
            self.tables["head_distances"].append(distance_row(item.number, kind, found))

    def _write_facts(self) -> None:
        if self.batch is not None and self.batch.kept:
            self.tables["kept_facts"].append(kept_rows(self.batch.kept))
        if self.batch is not None and self.with_facts:
            for gathered in self.batch.facts.values():
                for name, rows in gathered.tables().items():
                    self.tables[name].append(rows)
        self.batch = None
