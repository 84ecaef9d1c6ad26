"""This file fills one segment: maps, facts and text tables, in batches sorted by length."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from attnstore.format import names
from attnstore.format.arrays import Each, MapsWriter
from attnstore.format.fact_tables import MEASURED
from attnstore.format.manifest import File, StoreInfo
from attnstore.format.parquet import TableWriter
from attnstore.format.tables import TABLES
from attnstore.job.keep import KeepMaps
from attnstore.job.rows import Placed, place, skipped_rows, text_rows
from attnstore.job.source import Prepared, Source
from attnstore.job.writer import COMPILED_WEIGHTS, Writer, n_weights
from attnstore.reduce.facts import compile_facts
from attnstore.text.example import Skipped

BATCH_TOKENS = 2_048
"""Padded tokens of one batch."""

BATCH_MAP_BYTES = 16 * 2**20
"""Bytes of one layer's padded float32 maps in one batch; a longer example is a batch of its own."""

COMPILED_FROM = 2**28
"""Pairs of heads times cells of a segment from which compiling their comparison pays (a second against 1.5)."""

ROWS_OF_EXAMPLES = 128
"""Examples whose text tables are made at a time: rows as mappings need much memory."""


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
    compiled = n_weights(info) >= COMPILED_WEIGHTS
    if compiled and info.facts["tables"]:
        compile_facts()
    keep = KeepMaps(info, compiled=compiled)
    cells, specs = keep.plan(placed)
    tables = {name: TableWriter(staging, name) for name in (*TABLES, *MEASURED, "head_distances")}
    threads = source.spare_threads
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    each: Each = map if pool is None else pool.map
    maps = MapsWriter(staging / names.MAPS, specs, each) if specs else None
    writer = Writer(info, keep, maps, tables, compiled=compiled, each=each)
    writer.compares_compiled = _comparisons(placed, info) >= COMPILED_FROM
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
        if pool is not None:
            pool.shutdown()


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
