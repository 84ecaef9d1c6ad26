"""Every table is written so that DuckDB, pandas and Arrow read back what was given."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnstore.format.fact_tables import STORED
from attnstore.format.parquet import TableWriter

ROWS = 7


def values(field: pa.Field, random: np.random.Generator) -> list[Any]:
    """As many values of a column, the fourth null where that is allowed."""
    kind, is_list = field.type, pa.types.is_list(field.type)
    item = kind.value_type if is_list else kind
    size = 5 * ROWS if is_list else ROWS
    if pa.types.is_string(item):
        own: list[Any] = [f"é {number}" for number in random.integers(3, size=size)]
    elif pa.types.is_boolean(item):
        own = (random.random(size) < 0.5).tolist()
    elif pa.types.is_integer(item):
        own = random.integers(-1, 2**15 - 1, size).tolist()
    else:  # numbers that half precision has
        own = [
            np.float16(value) if pa.types.is_float16(item) else float(value)
            for value in random.integers(99, size=size) / 64
        ]
    found = [own[5 * row : 5 * row + 5] for row in range(ROWS)] if is_list else own
    return [None if row == 3 and field.nullable else value for row, value in enumerate(found)]


def written(folder: Path, name: str) -> pa.Table:
    """The table that was written to `folder`, in two batches."""
    random = np.random.default_rng(len(name))
    schema = STORED[name]
    table = pa.Table.from_pydict({field.name: values(field, random) for field in schema}, schema=schema)
    writer = TableWriter(folder, name)
    for batch in table.to_batches(max_chunksize=4):
        writer.append(batch)
    assert writer.close() == ROWS
    return table


@pytest.mark.parametrize("name", STORED)
def test_every_table_reads_back_in_duckdb_pandas_and_arrow(name: str, tmp_path: Path) -> None:
    table = written(tmp_path, name)
    path = tmp_path / f"{name}.parquet"
    assert pq.read_table(path, page_checksum_verification=True).equals(table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    columns = ", ".join(f'"{column}"' for column in table.column_names)
    assert duckdb.execute(f"select {columns} from '{path}'").fetchall() == rows
    assert len(pd.read_parquet(path)) == ROWS


def test_the_bytes_of_numbers_are_split_but_for_half_precision_which_duckdb_cannot_read_so(tmp_path: Path) -> None:
    written(tmp_path, "token_facts")
    group = pq.ParquetFile(tmp_path / "token_facts.parquet").metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    encodings = {column.path_in_schema.split(".")[0]: set(column.encodings) for column in columns}
    assert {name for name, own in encodings.items() if "BYTE_STREAM_SPLIT" in own} == {"example", "token", "argmax"}
    assert {name for name, own in encodings.items() if "RLE_DICTIONARY" in own} == {"kind"}


def test_what_is_sure_to_repeat_takes_next_to_nothing(tmp_path: Path) -> None:
    # 64 heads of 4,000 tokens that all attend to the first 16 keys: the three upper bytes of each number are 0.
    schema = STORED["token_facts"]
    keys = np.random.default_rng(0).integers(16, size=(4000, 64)).astype(np.int32)
    columns = {"example": [0] * 4000, "kind": ["encoder"] * 4000, "token": range(4000), "argmax": keys.tolist()}
    halves = [[np.float16(0)] * 64] * 4000
    table = pa.Table.from_pydict({**columns, "max": halves, "entropy_nats": halves}, schema=schema)
    writer = TableWriter(tmp_path, "token_facts")
    for batch in table.to_batches():
        writer.append(batch)
    writer.close()
    assert (tmp_path / "token_facts.parquet").stat().st_size < 0.6 * keys.size  # 4 bits a number, and little else
