"""This file writes the Parquet tables of one segment or addition, row group by row group, and says what ails one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.format import names
from attnstore.format.fact_tables import STORED
from attnstore.format.limits import COLUMN_BYTES, COLUMN_DEPTH, FOOTER_BYTES, ROWS_PER_BYTE, TABLE_COLUMNS
from attnstore.format.regular import opened
from attnstore.format.tables import ADDED

ROW_GROUP_BYTES = 4 * 2**20
"""Rows are held until they make a row group of about this size. DuckDB reads row groups in parallel: with 16 MB the
words of a small corpus are one group, and one thread answers (112 ms against 73 ms for all relations of GUM)."""

_SPLIT = (pa.int32(), pa.int64(), pa.float32(), pa.float64())


class TableWriter:
    """Writes one table into a folder. The file appears with the first row; without rows there is none."""

    def __init__(self, folder: Path, table: str) -> None:
        self.path = folder / names.parquet_name(table)
        self.schema = STORED[table]
        self.rows = 0
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def append(self, batch: pa.RecordBatch) -> None:
        """Take rows of the table's schema."""
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        self._held.append(_copied(batch))
        self._held_bytes += batch.nbytes
        if self._held_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def append_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take rows as mappings; a key that is absent is null."""
        self.append(pa.RecordBatch.from_pylist(list(rows), schema=self.schema))

    def _flush(self) -> None:
        if not self._held:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, self.schema, **_options(self.schema))
        self._writer.write_table(pa.Table.from_batches(self._held))
        self._held, self._held_bytes = [], 0

    def close(self) -> int:
        """Write what is held and the footer; the number of rows."""
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        return self.rows

    def abandon(self) -> None:
        """Close the file without what is held; the caller deletes the folder."""
        self._held = []
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Rows come as views of NumPy arrays. Held so, they lie scattered among the large maps that are
    # allocated and freed meanwhile, and keep malloc from using that memory again (12 MB a batch were
    # lost for as long as a row group grew). Arrow's own pool lies apart.
    columns = [pa.concat_arrays([column, column.slice(0, 0)]) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _options(schema: pa.Schema) -> dict[str, Any]:
    leaves = dict(map(_leaf, schema))
    # The bytes of a number differ in what they tell: split, the first ones shrink and the last ones do not disturb
    # them. DuckDB cannot read half precision split (2.0), and there a dictionary takes as much as the plain numbers
    # and twice as long to write. Text and flags repeat themselves.
    split = [path for path, kind in leaves.items() if kind in _SPLIT]
    plain = [path for path, kind in leaves.items() if pa.types.is_float16(kind)]
    return {
        "compression": "zstd",
        "compression_level": 3,
        "write_page_checksum": True,
        "use_dictionary": [path for path in leaves if path not in (*split, *plain)],
        "column_encoding": dict.fromkeys(split, "BYTE_STREAM_SPLIT") or None,
    }


def _leaf(field: pa.Field) -> tuple[str, pa.DataType]:
    """The path of a column within the file, and the type of what it holds."""
    if pa.types.is_list(field.type):
        return f"{field.name}.list.element", field.type.value_type
    return field.name, field.type


def table_faults(path: Path, table: str, rows: int | None) -> Iterator[str]:
    """What makes a Parquet file no such table: its columns, types and rows, as its footer tells them.

    `rows` is what the manifest says. No page is read. A table that the format does not know may have any columns.
    """
    try:
        _check_footer(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield from _column_faults(table, file.schema_arrow)
            found = file.metadata
            if found.num_rows != rows:
                yield f"{found.num_rows} rows, {rows} in the manifest"
            yield from _size_faults(path, found)
    except (OSError, ValueError, MemoryError, pa.ArrowException, RecursionError) as error:
        yield f"no readable Parquet file ({error})"


def _check_footer(path: Path) -> None:
    """ValueError for a footer that is not there, or so large that reading it alone takes gigabytes."""
    with os.fdopen(opened(path, "a table"), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - 8, 0))
        end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != b"PAR1" or length > min(size - 8, FOOTER_BYTES):
        raise ValueError("no footer at its end" if end[4:] != b"PAR1" else f"a footer of {length} bytes")


def _column_faults(table: str, found: pa.Schema) -> Iterator[str]:
    if len(found) > TABLE_COLUMNS:
        yield f"{len(found)} columns, not {TABLE_COLUMNS} at most"
        return
    if len({name.casefold() for name in found.names}) < len(found):
        yield "two columns of one name"  # SQL does not tell them apart by case
        return
    for field in found:
        if _is_deeper(field.type, COLUMN_DEPTH):
            yield f"a column of more than {COLUMN_DEPTH} types within one another"
            return
    for field in STORED.get(table, pa.schema([])):
        if field.name not in found.names:
            if field.name not in ADDED.get(table, ()):
                yield f"no column {field.name}"
        elif found.field(field.name).type != field.type:
            yield f"{field.name} is {found.field(field.name).type}, not {field.type}"


def _is_deeper(kind: pa.DataType, most: int) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return bool(inner) and (not most or any(_is_deeper(one, most - 1) for one in inner))


def _size_faults(path: Path, found: pq.FileMetaData) -> Iterator[str]:
    if found.num_rows > ROWS_PER_BYTE * path.stat().st_size:
        yield f"{found.num_rows} rows in {path.stat().st_size} bytes, not {ROWS_PER_BYTE} a byte at most"
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    if sum(group.num_rows for group in groups) != found.num_rows:
        yield f"row groups of {sum(group.num_rows for group in groups)} rows, {found.num_rows} in the footer"
    for group in groups:
        sizes = [group.column(number).total_uncompressed_size for number in range(group.num_columns)]
        if max(sizes, default=0) > COLUMN_BYTES or min(sizes, default=0) < 0:
            yield f"a column of {max(sizes)} bytes in a row group, not {COLUMN_BYTES} at most"
            return
