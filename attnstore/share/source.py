"""This file reads a store that another one is made from: the current rows of its tables, and files as they lie."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attnstore.errors import BadInput, Damaged
from attnstore.format import names
from attnstore.format.fact_tables import STORED
from attnstore.format.manifest import File, Unit
from attnstore.store.store import Store

Numbers = NDArray[np.int64]
FETCH = "Fetch the store again, or run: attnstore verify"
_BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Piece:
    """Examples of one segment of a source; `first` is the number that the first of them gets."""

    source: "Source"
    segment: int
    examples: Numbers
    first: int

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its segment."""
        planned = self.source.info.segments[self.segment]
        return len(self.examples) == planned.stop - planned.first

    @property
    def unit(self) -> Unit:
        """The segment in its source."""
        return self.source.segments[self.segment]

    def rows(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The current rows of a table that belong to these examples, which keep the numbers of their source."""
        yield from self.source.rows(table, self.examples, self.segment, columns)

    def numbered(self, examples: Numbers) -> NDArray[np.int32]:
        """What numbers these examples of the source get."""
        return (np.searchsorted(self.examples, examples) + self.first).astype(np.int32)


class Source:
    """An opened store, its segments by number. BadInput for one behind an address, or whose ingest has not ended."""

    def __init__(self, store: Store, number: int, doing: str) -> None:
        self.store, self.number, self.root = store, number, store.contents.folder
        self.files, self.info = store.engine.files, store.info
        self.segments = {int(unit.id): unit for unit in store.contents.segments}
        if len(self.segments) < len(self.info.segments):
            found = f"{len(self.segments)} of {len(self.info.segments)} segments in {self.root}"
            raise BadInput(doing, found, "a finished store", "Run its ingest to the end first")

    @property
    def origin(self) -> dict[str, object]:
        """What a store that is made from this one says of it."""
        info, snapshot = self.info, self.store.snapshot
        return {
            "store_id": info.store_id,
            "content_hash": snapshot.content_hash,
            "licence": info.corpus.get("licence", ""),
            "examples": info.n_examples,
        }

    def whole(self, segment: int, first: int) -> Piece:
        """All examples of a segment."""
        planned = self.info.segments[segment]
        return Piece(self, segment, np.arange(planned.first, planned.stop, dtype=np.int64), first)

    def is_own(self, table: str) -> bool:
        """Whether the segments themselves have the current rows of a table, and no addition does."""
        return all(unit.is_segment for unit, _ in self.files.sources[table])

    def rows(
        self, table: str, examples: Numbers | None, segment: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The current rows of a table; of these examples (sorted), which lie in `segment`, where they are given."""
        self.files.check([table])
        for unit, file in self.files.sources[table]:
            if segment is None or not unit.is_segment or int(unit.id) == segment:
                path = self.store.contents.path(unit, file)
                yield from table_rows(path, STORED[table], examples, columns)

    def original_rows(self, table: str, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The rows that the segment of a piece has of a table, whatever additions say."""
        path = self.root / piece.unit.folder / names.parquet_name(table)
        if path.is_file():
            yield from table_rows(path, STORED[table], None if piece.is_whole else piece.examples)


def table_rows(
    path: Path, schema: pa.Schema, examples: Numbers | None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file of these examples, a few thousand at a time, with every column of the schema.

    Columns that an older store lacks are null. Damaged for a file that cannot be read.
    """
    schema = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            there = [name for name in schema.names if name in file.schema_arrow.names]
            narrow = examples if "example" in file.schema_arrow.names else None
            groups = [group for group in range(file.num_row_groups) if _may_hold(file, group, narrow)]
            read = there if narrow is None or "example" in there else ["example", *there]
            for batch in file.iter_batches(batch_size=8_192, row_groups=groups, columns=read):
                if narrow is not None:
                    batch = batch.filter(pa.array(np.isin(batch["example"].to_numpy(), narrow)))
                if batch.num_rows:
                    arrays = [batch[f.name] if f.name in there else pa.nulls(batch.num_rows, f.type) for f in schema]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"reading {path}", f"no readable Parquet file ({error})", "", FETCH) from error


def _may_hold(file: pq.ParquetFile, group: int, examples: Numbers | None) -> bool:
    # An addition holds the rows of all segments: most of its row groups are of others.
    if examples is None:
        return True
    described = file.metadata.row_group(group)
    column = described.column(file.schema_arrow.get_field_index("example"))
    found = column.statistics
    if column.path_in_schema != "example" or found is None or not found.has_min_max:
        return True
    return bool(len(examples) and found.min <= examples[-1] and found.max >= examples[0])


def copied(unit: Unit, file: File, root: Path, target: Path) -> File:
    """Copy a file of a unit to `target`, hashed on the way; Damaged where it is not as its manifest says."""
    path = root / unit.folder / file.path
    digest, size = hashlib.sha256(), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as source, target.open("xb") as copy:
        while block := source.read(_BLOCK):
            digest.update(block)
            size += len(block)
            copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    if size != file.bytes or digest.hexdigest() != file.sha256:
        raise Damaged(f"reading {path}", f"{size} bytes, sha256 {digest.hexdigest()[:16]}…", "those recorded", FETCH)
    return file
