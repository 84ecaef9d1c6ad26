"""This file writes the Parquet tables of one segment or addition, row group by row group."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.format import names
from attnstore.format.fact_tables import STORED

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
