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
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attnstore.format import names
from attnstore.format.arrays import MapsWriter
from attnstore.format.manifest import File, StoreInfo
from attnstore.format.parquet import TableWriter
from attnstore.format.quantise import PRECISIONS, checked_weights
from attnstore.format.tables import TABLES
from attnstore.job.fact_rows import BatchFacts
from attnstore.job.keep import KeepMaps
from attnstore.job.rows import Placed, place, skipped_rows, text_rows
from attnstore.job.source import Prepared, Source
from attnstore.reduce.facts import facts
from attnstore.reduce.token_masses import TokenMasses, token_masses
from attnstore.text.example import Skipped

BATCH_TOKENS = 2_048
"""Padded tokens of one batch."""

BATCH_MAP_BYTES = 16 * 2**20
"""Bytes of one layer's padded float32 maps in one batch; a longer example is a batch of its own."""

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
    tables = {name: TableWriter(staging, name) for name in TABLES}
    maps = MapsWriter(staging / names.MAPS, specs) if specs else None
    writer = _Writer(info, keep, maps, tables)
    try:
        for batch in batches(placed, max(kind.heads for kind in info.kinds.values())):
            writer.start(batch)
            source.capture([item.prepared for item in batch], writer.take)
            writer.finish()
        placed.sort(key=lambda item: item.number)
        for start in range(0, len(placed), ROWS_OF_EXAMPLES):
            some = placed[start : start + ROWS_OF_EXAMPLES]
            for name, rows in text_rows(some, segment.number, cells).items():
                tables[name].append_rows(rows)
        tables["skipped"].append_rows(skipped_rows(segment.skipped))
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


class _Writer:
    """Takes layers from the model's thread and works them off on its own."""

    def __init__(
        self, info: StoreInfo, keep: KeepMaps, maps: MapsWriter | None, tables: Mapping[str, TableWriter]
    ) -> None:
        self.info, self.keep, self.maps, self.tables = info, keep, maps, tables
        self.precision = PRECISIONS[info.precision]
        self.with_facts = bool(info.facts["tables"])
        self.with_masses = "token_masses" in info.facts["tables"]
        self.batch: list[Placed] = []
        self.gathered: dict[str, BatchFacts] = {}
        self.error: BaseException | None = None
        self._queue: queue.Queue[tuple[str, int, NDArray[np.float32]] | None] = queue.Queue()
        self._room = threading.Condition()
        self._waiting = 0
        self._thread = threading.Thread(target=self._run, name="attnstore-writer", daemon=True)
        self._thread.start()

    def start(self, batch: list[Placed]) -> None:
        """Begin a batch; the one before it is finished."""
        self.batch = batch
        self.together: dict[str, list[list[NDArray[np.float32]]]] = {}
        if self.with_facts:
            self.gathered = {
                name: BatchFacts(name, kind, batch, masses=self.with_masses) for name, kind in self.info.kinds.items()
            }

    def take(self, kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        """Take one layer's maps [batch, head, query, key] from the model's thread."""
        size = weights.nbytes
        with self._room:
            # A layer beyond the bound waits until everything before it is done, so that order is kept.
            limit = 0 if size > WAITING_BYTES else WAITING_BYTES - size
            self._room.wait_for(lambda: self._waiting <= limit or self.error is not None)
            if self.error is not None:
                raise self.error
            if size <= WAITING_BYTES:
                self._waiting += size
        if size > WAITING_BYTES:
            self._work(kind, layer, weights)
        else:
            self._queue.put((kind, layer, weights))

    def finish(self) -> None:
        """Wait until the batch is worked off, and write its facts."""
        with self._room:
            self._room.wait_for(lambda: self._waiting == 0 or self.error is not None)
        if self.error is not None:
            raise self.error
        for gathered in self.gathered.values():
            for name, rows in gathered.tables().items():
                self.tables[name].append(rows)
        self.gathered = {}

    def stop(self) -> None:
        """End the thread; what waits is dropped after an error."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            kind, layer, weights = item
            size = weights.nbytes
            try:
                if self.error is None:
                    self._work(kind, layer, weights)
            except BaseException as error:  # handed to the model's thread, which raises it
                self.error = error
            del item, weights
            with self._room:
                self._waiting -= size
                self._room.notify_all()

    def _work(self, kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        rows = [item for item in self.batch if kind in item.frames]
        if not rows:
            return
        maps = []
        for row, item in enumerate(rows):
            frame = item.frames[kind]
            own = weights[row, :, : len(frame.queries), : len(frame.keys)]
            maps.append(checked_weights(own, f"storing {kind} layer {layer} of {item.prepared.example.name}"))
        if self.maps is not None:
            for own, item in zip(maps, rows, strict=True):
                self.keep.append(self.maps, kind, layer, own, item.frames[kind])
        if not self.with_facts:
            return
        layers = self.info.kinds[kind].layers
        if weights.nbytes * layers > TOGETHER_BYTES:
            self._reduce(kind, slice(layer, layer + 1), rows, maps)
            return
        together = self.together.setdefault(kind, [])
        together.append(maps)
        if len(together) == layers:
            joined = [np.concatenate(own) for own in zip(*together, strict=True)]
            self._reduce(kind, slice(0, layers), rows, joined)
            del self.together[kind]

    def _reduce(self, kind: str, layers: slice, rows: Sequence[Placed], maps: Sequence[NDArray[np.float32]]) -> None:
        """The facts of some layers, maps [layer and head, query, key] of each example."""
        parameters = self.info.facts["parameters"]
        found = [facts(own, item.frames[kind], **parameters) for own, item in zip(maps, rows, strict=True)]
        masses: list[TokenMasses] = []
        if self.with_masses:
            masses = [token_masses(own, item.frames[kind]) for own, item in zip(maps, rows, strict=True)]
        self.gathered[kind].take(layers, found, masses)
