"""This file writes an addition: tables of a finished store that are replaced as a whole, published in one step."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import commit, publish, published, seal, stage
from attnstore.format.fact_tables import STORED
from attnstore.format.manifest import Snapshot
from attnstore.format.parquet import TableWriter
from attnstore.share.card import write_card
from attnstore.store.store import Store
from attnstore.store.store import open as open_store


@dataclass(frozen=True, slots=True)
class Annotated:
    """What an annotation did: the addition's id, how many examples it changed, names that match no example."""

    addition: str
    examples: int
    unmatched: tuple[str, ...]


@contextmanager
def opened(root: Path, doing: str) -> Iterator[Store]:
    """A finished store at its newest state. BadInput where the ingest has not ended."""
    with open_store(root) as store:
        store_id, known = store.info.store_id, store.snapshot
    if _there(root, known) != {reference.id for reference in known.additions}:
        commit(root, store_id)  # an annotation was interrupted between its last two steps
    with open_store(root) as store:
        there, planned = len(store.contents.segments), len(store.info.segments)
        if there < planned:
            # An addition replaces whole tables: segments that come later would not be in them.
            found, remedy = f"{there} of {planned} segments", "Run its ingest to the end first"
            raise BadInput(doing, found, "a finished store", remedy)
        yield store


def _there(root: Path, snapshot: Snapshot) -> set[str]:
    """The additions in the folder, but for those that the snapshot leaves out on purpose."""
    return set(published(root, names.ADDITIONS)) - set(snapshot.dropped)


def _batches(store: Store, table: str) -> Iterator[pa.RecordBatch]:
    store.engine.files.check([table])
    for path in store.engine.files.paths(table):
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches():
                yield _completed(batch, STORED[table])


def _completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with every column of the schema, null in those that an older store lacks."""
    there = batch.schema.names
    columns = [batch[f.name] if f.name in there else pa.nulls(batch.num_rows, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def carried(store: Store, table: str, without: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """The rows of a table that stay as they are."""
    for batch in _batches(store, table):
        yield batch.filter(pa.array(~np.isin(batch["example"].to_numpy(), without)))


def with_column(store: Store, table: str, name: str, values: Mapping[int, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a table, with the value of one column replaced for the examples that are named."""
    for batch in _batches(store, table):
        place, field = batch.schema.get_field_index(name), batch.schema.field(name)
        pairs = zip(batch["example"].to_pylist(), batch[name].to_pylist(), strict=True)
        new = [values.get(number, old) for number, old in pairs]
        yield batch.set_column(place, field, pa.array(new, field.type))


def publish_addition(
    store: Store,
    what: str,
    tables: Sequence[str],
    source: Mapping[str, str],
    doing: str,
    fill: Callable[[dict[str, TableWriter]], None],
    parameters: Mapping[str, object] | None = None,
) -> str:
    """Write and commit an addition; its id. `parameters` are those of facts that were computed anew.

    BadInput where another addition came in between: it would be undone."""
    root, before = store.contents.folder, {reference.id for reference in store.snapshot.additions}
    numbers = (name.partition("-")[0] for name in published(root, names.ADDITIONS))
    number = 1 + max((int(digits) for digits in numbers if digits.isdecimal()), default=0)
    folder = f"{names.ADDITIONS}/{number:06d}-{what}"
    staging = stage(root, folder)
    writers = {name: TableWriter(staging, name) for name in tables}
    try:
        fill(writers)
        rows = {name: writer.close() for name, writer in writers.items()}
        for name, count in rows.items():
            if not count:
                # Without a file the older table would stay in force.
                pq.write_table(writers[name].schema.empty_table(), staging / names.parquet_name(name))
        about = {"scope": "store", "source": dict(source), "replaces": sorted(tables)}
        seal(staging, folder, about if parameters is None else {**about, "parameters": dict(parameters)}, rows)
        if _there(root, store.snapshot) != before or not publish(staging, root, folder):
            remedy = "Run the same command again"
            raise BadInput(doing, "another addition was made meanwhile", "one at a time", remedy)
    except BaseException:
        for writer in writers.values():
            writer.abandon()
        shutil.rmtree(staging, ignore_errors=True)
        raise
    commit(root, store.info.store_id)
    write_card(root)
    return folder.rpartition("/")[2]
