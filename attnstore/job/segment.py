"""This file fills one segment: maps, facts and text tables, in batches sorted by length.

The model's thread only hands over layers; one other thread reduces, rounds, compresses and appends.
What waits between them is bounded in bytes, and a layer above that bound is taken on the model's own
thread, so that no more than one layer's map waits beside the one in work.
"""

import contextlib
import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnstore.format import names
from attnstore.format.arrays import MapsWriter
from attnstore.format.fact_tables import MEASURED
from attnstore.format.manifest import File, StoreInfo
from attnstore.format.parquet import TableWriter
from attnstore.format.quantise import checked_weights
from attnstore.format.tables import TABLES
from attnstore.job.fact_rows import BatchFacts, distance_row, kept_rows
from attnstore.job.keep import KeepMaps
from attnstore.job.rows import Placed, place, skipped_rows, text_rows
from attnstore.job.source import Prepared, Source
from attnstore.reduce.columns import Columns
from attnstore.reduce.divergence import sampled_rows
from attnstore.reduce.facts import facts
from attnstore.reduce.head_distances import head_distances
from attnstore.reduce.token_masses import TokenMasses, token_masses
from attnstore.text.example import Skipped

BATCH_TOKENS = 2_048
"""Padded tokens of one batch."""

BATCH_MAP_BYTES = 16 * 2**20
"""Bytes of one layer's padded float32 maps in one batch; a longer example is a batch of its own."""

COMPILED_FROM = 2**28
"""Pairs of heads times cells of a segment from which compiling their comparison pays (a second against 1.5)."""

ROWS_OF_EXAMPLES = 128
"""Examples whose text tables are made at a time: rows as mappings need much memory."""

TOGETHER_BYTES = 32 * 2**20
"""All layers of a batch are reduced together where they are no larger than this: a short map costs more in calls than
in arithmetic (72 heads of 17 tokens at a time halve the time of the facts)."""

WAITING_BYTES = 32 * 2**20
"""Layers that may wait for the writing thread; one larger than this never waits."""


@dataclass(slots=True)
class Segment:
    """What one unit of work holds before it is written."""

    number: int
    first: int
    prepared: list[Prepared] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def fill(staging: Path, segment: Segment, info: StoreInfo, source: Source) -> tuple[dict[str, int], list[File]]:
    """Write the maps and tables of a segment into `staging`; row counts by table, and the shards with their hashes."""
    prepared = source.annotate(segment.prepared)
    placed = [place(segment.first + index, item, info.kinds) for index, item in enumerate(prepared)]
    placed.sort(key=lambda item: (item.prepared.length, item.number))  # batches of like length
    keep = KeepMaps(info)
    cells, specs = keep.plan(placed)
    tables = {name: TableWriter(staging, name) for name in (*TABLES, *MEASURED, "head_distances")}
    maps = MapsWriter(staging / names.MAPS, specs) if specs else None
    writer = _Writer(info, keep, maps, tables)
    writer.compiled = _comparisons(placed, info) >= COMPILED_FROM
    try:
        for batch in batches(placed, max(kind.heads for kind in info.kinds.values())):
            source.capture([item.prepared for item in batch], partial(writer.take, batch))
        # The text tables are made while the writing thread works off the last batches.
        placed.sort(key=lambda item: item.number)
        for start in range(0, len(placed), ROWS_OF_EXAMPLES):
            some = placed[start : start + ROWS_OF_EXAMPLES]
            for name, rows in text_rows(some, segment.number, cells).items():
                tables[name].append_rows(rows)
        tables["skipped"].append_rows(skipped_rows(segment.skipped))
        writer.finish()
        shards = [] if maps is None else maps.close()
        return {name: count for name, table in tables.items() if (count := table.close())}, shards
    except BaseException:
        writer.stop()
        for abandon in (*([maps.abandon] if maps is not None else []), *(table.abandon for table in tables.values())):
            with contextlib.suppress(OSError):  # what is buffered may not fit on the disk either
                abandon()
        raise
    finally:
        writer.stop()


def _comparisons(placed: Sequence[Placed], info: StoreInfo) -> int:
    """Pairs of heads times cells that are compared in a segment."""
    rows = int(info.facts.get("distances", {}).get("sampled", 0))
    cells = 0
    for name, kind in info.kinds.items():
        pairs = (kind.layers * kind.heads) ** 2 // 2
        frames = (item.frames[name] for item in placed if name in item.frames)
        cells += pairs * sum((rows or len(frame.queries)) * len(frame.keys) for frame in frames)
    return cells


def batches(placed: Sequence[Placed], heads: int) -> Iterator[list[Placed]]:
    """Cut examples, sorted by length, into batches within both limits; at least one example each."""
    batch: list[Placed] = []
    sides = (0, 0)
    for item in placed:
        target = len(item.prepared.target) if item.prepared.target else 0
        grown = (max(sides[0], len(item.prepared.source)), max(sides[1], target))
        padded = (len(batch) + 1) * sum(grown)
        map_bytes = (len(batch) + 1) * max(grown) ** 2 * heads * 4
        if batch and (padded > BATCH_TOKENS or map_bytes > BATCH_MAP_BYTES):
            yield batch
            batch, grown = [], (len(item.prepared.source), target)
        batch.append(item)
        sides = grown
    if batch:
        yield batch


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
    weights: NDArray[np.float32]


class _Writer:
    """Takes layers from the model's thread and works them off on its own; the model runs on into its next batch."""

    def __init__(
        self, info: StoreInfo, keep: KeepMaps, maps: MapsWriter | None, tables: Mapping[str, TableWriter]
    ) -> None:
        self.info, self.keep, self.maps, self.tables = info, keep, maps, tables
        self.with_facts = bool(info.facts["tables"])
        self.with_masses = "token_masses" in info.facts["tables"]
        self.distances: Mapping[str, float] = info.facts.get("distances", {})
        self.compiled = False
        self.batch: _Batch | None = None
        self.error: BaseException | None = None
        self._queue: queue.Queue[_Layer | None] = queue.Queue()
        self._room = threading.Condition()
        self._waiting = 0
        self._thread = threading.Thread(target=self._run, name="attnstore-writer", daemon=True)
        self._thread.start()

    def take(self, batch: Sequence[Placed], kind: str, number: int, weights: NDArray[np.float32]) -> None:
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
            frame = item.frames[kind]
            own = weights[row, :, : len(frame.queries), : len(frame.keys)]
            maps.append(checked_weights(own, f"storing {kind} layer {layer.number} of {item.prepared.example.name}"))
        if self.maps is not None:
            for own, item in zip(maps, rows, strict=True):
                kept = self.keep.append(self.maps, kind, layer.number, own, item.frames[kind])
                if kept is not None:
                    self.batch.kept[item.number, kind, layer.number] = kept
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
        found = [facts(own, item.frames[kind], **parameters) for own, item in zip(maps, rows, strict=True)]
        masses: list[TokenMasses] = []
        if self.with_masses:
            masses = [token_masses(own, item.frames[kind]) for own, item in zip(maps, rows, strict=True)]
        batch.facts[kind].take(layers, found, masses)

    def _compare(self, batch: _Batch, kind: str, rows: Sequence[Placed], maps: Sequence[NDArray[np.float32]]) -> None:
        """Hold the rows by which heads are compared, and compare them when the last layer is there."""
        compared = batch.compared.setdefault(kind, [])
        sampled = int(self.distances["sampled"])
        compared.append([own[:, sampled_rows(own.shape[1], sampled)] for own in maps])
        if len(compared) < self.info.kinds[kind].layers:
            return
        for item, own in zip(rows, zip(*batch.compared.pop(kind), strict=True), strict=True):
            found = head_distances(np.concatenate(own), eps=self.distances["eps"], compiled=self.compiled)
            self.tables["head_distances"].append(distance_row(item.number, kind, found))

    def _write_facts(self) -> None:
        if self.batch is not None and self.batch.kept:
            self.tables["kept_facts"].append(kept_rows(self.batch.kept))
        if self.batch is not None and self.with_facts:
            for gathered in self.batch.facts.values():
                for name, rows in gathered.tables().items():
                    self.tables[name].append(rows)
        self.batch = None
