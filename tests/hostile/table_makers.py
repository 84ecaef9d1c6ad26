"""Attacks by Parquet tables: columns, types, rows, sizes and footers that are not what they say."""

import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.forging import repin
from tests.hostile.attack import SEGMENT, add, edited, harmless, refused

EXAMPLES, TOKENS = (f"{SEGMENT}/{name}.parquet" for name in ("examples", "tokens"))


def _table(name: str, change: Callable[[pa.Table], pa.Table], **options: Any) -> Callable[[Path], None]:
    """Writes a table anew, and its rows into the manifest."""

    def make(store: Path) -> None:
        changed = change(pq.read_table(store / name))
        pq.write_table(changed, store / name, **options)
        _count(store, Path(name).stem, changed.num_rows)

    return make


def _count(store: Path, table: str, rows: int) -> None:
    edited(store / SEGMENT / "segment.json", lambda value: value["rows"].update({table: rows}))
    repin(store, files=True)


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def _first(name: str, value: Any, rows: int = 1) -> Callable[[pa.Table], pa.Table]:
    """Another number in the first rows."""

    def change(table: pa.Table) -> pa.Table:
        column = table[name].to_pylist()
        return _with(table, name, pa.array([*[value] * rows, *column[rows:]], table[name].type))

    return change


ROWS = 2**22
"""Of a row group."""

ODD = ('x"; drop table t;--', "<img src=x onerror=1>", "a\x1b[2J", "'", "select", "", "\u202e", "x" * 5000)


def _odd_columns(table: pa.Table) -> pa.Table:
    for name in ODD:
        table = table.append_column(name, pa.array([name] * table.num_rows))
    return table


def _nested_column(table: pa.Table) -> pa.Table:
    kind = pa.list_(pa.struct([("a", pa.list_(pa.int32()))]))
    return table.append_column("deep", pa.nulls(table.num_rows, kind))


def _deep_column(table: pa.Table) -> pa.Table:
    kind: pa.DataType = pa.int32()
    for _ in range(30):
        kind = pa.struct([("a", pa.list_(kind))])
    return table.append_column("deep", pa.nulls(table.num_rows, kind))


for name, make, says in (
    ("table odd columns", _table(TOKENS, _odd_columns), None),
    ("table a nested column", _table(TOKENS, _nested_column), None),
    ("table a deep column", _table(TOKENS, _deep_column), "types within one another"),
    ("table text for numbers", _table(TOKENS, lambda t: _with(t, "token", t["token"].cast(pa.string()))), "token is"),
    ("table wide numbers", _table(TOKENS, lambda t: _with(t, "token", t["token"].cast(pa.int64()))), "token is int64"),
    ("table lists for texts", _table(TOKENS, lambda t: _with(t, "text", pa.array([["x"]] * len(t)))), "text is list"),
    ("table without a column", _table(EXAMPLES, lambda t: t.drop_columns(["n_tokens"])), "no column n_tokens"),
    ("table one name in two cases", _table(TOKENS, lambda t: t.append_column("TOKEN", t["token"])), "of one name"),
    ("table fewer rows than planned", _table(EXAMPLES, lambda t: t.slice(0, 5)), "examples in segment"),
    ("table no rows", _table(TOKENS, lambda t: t.slice(0, 0)), "none; expected a row for each token"),
    ("table no examples", _table(EXAMPLES, lambda t: t.slice(0, 0)), "examples in segment"),
    ("table a long example", _table(EXAMPLES, _first("n_tokens", 2**31 - 1)), "cells|tokens"),
    ("table a negative example", _table(EXAMPLES, _first("n_tokens", -3)), "cells|tokens"),
    ("table cells below nothing", _table(EXAMPLES, _first("cell_encoder", -50)), "cells|cell"),
    ("table cells beyond the map", _table(EXAMPLES, _first("cell_encoder", 10**15)), "cells"),
    ("table an example twice", _table(EXAMPLES, _first("example", 1)), "comes twice"),
    ("table an example of another segment", _table(EXAMPLES, _first("segment", 77)), "segment"),
    ("table a token twice", _table(TOKENS, _first("token", 1, 20)), "token"),
    ("table a word below nothing", _table(TOKENS, _first("word", -10, 20)), "word"),
    ("table a word that is not there", _table(TOKENS, _first("word", 10**6, 20)), "word"),
):
    add(name, make, says)


@refused("columns, not 1024 at most|a footer of")
def table_of_many_columns(store: Path) -> None:
    """20,000 of them."""
    table = pq.read_table(store / TOKENS)
    extra = {f"c{number}": pa.nulls(1, pa.bool_()) for number in range(20_000)}
    pq.write_table(pa.table({**{n: table[n].slice(0, 1) for n in table.column_names}, **extra}), store / TOKENS)
    _count(store, "tokens", 1)


@refused("not 1024 a byte at most", slow=True)
def table_of_fifty_million_equal_rows(store: Path) -> None:
    """Some kB."""
    _repeat(store, TOKENS)
    _count(store, "tokens", 12 * ROWS)


@refused("examples in segment|not 1024 a byte at most", slow=True)
def table_of_fifty_million_equal_examples(store: Path) -> None:
    """As many as the plan says."""
    _repeat(store, EXAMPLES)
    edited(store / "store.json", lambda value: value["segments"][0].update(stop=12 * ROWS))
    _count(store, "examples", 12 * ROWS)


def _repeat(store: Path, name: str) -> None:
    """Write the first row of a table again and again."""
    table = pq.read_table(store / name).slice(0, 1)
    columns = {
        field.name: pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(ROWS, np.int32)), table[field.name].combine_chunks()
        )
        if pa.types.is_string(field.type)
        else pa.array([table[field.name][0].as_py()] * ROWS, field.type)
        for field in table.schema
    }
    whole = pa.table(columns).cast(table.schema)
    with pq.ParquetWriter(
        store / name, table.schema, compression="zstd", write_statistics=False, max_rows_per_page=ROWS
    ) as writer:
        for _ in range(12):
            writer.write_table(whole, row_group_size=ROWS)


@refused("no readable Parquet")
def table_of_deep_columns(store: Path) -> None:
    """A schema of 100,000 levels: a reader that goes down by calling itself dies."""
    element = bytes([0x35]) + b"\0" + bytes([0x18, 1]) + b"g" + bytes([0x15]) + b"\2" + b"\0"
    root = bytes([0x48, 1]) + b"r" + bytes([0x15]) + b"\2" + b"\0"
    leaf = bytes([0x15]) + b"\2" + bytes([0x25]) + b"\0" + bytes([0x18, 1]) + b"l" + b"\0"
    depth = 100_000
    schema = bytes([0xFC]) + _varint(depth + 2) + root + element * depth + leaf
    footer = bytes([0x15, 2, 0x19]) + schema + bytes([0x16, 0, 0x19, 0x0C, 0])
    (store / TOKENS).write_bytes(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")
    repin(store, files=True)


def _varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


@refused("no readable Parquet")
def table_of_many_declared_columns(store: Path) -> None:
    """Thrift: a list that says it has a thousand million entries."""
    footer = bytes([0x15, 2, 0x19, 0xFC]) + _varint(10**9) + b"\0"
    (store / TOKENS).write_bytes(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")
    repin(store, files=True)


@refused("a footer of")
def table_with_a_footer_of_gigabytes(store: Path) -> None:
    """By its stated length."""
    data = (store / TOKENS).read_bytes()
    (store / TOKENS).write_bytes(data[:-8] + struct.pack("<I", 2**31) + b"PAR1")
    repin(store, files=True)


@refused("no footer")
def table_of_rubbish(store: Path) -> None:
    """No Parquet at all."""
    (store / TOKENS).write_bytes(bytes(range(256)) * 20)
    repin(store, files=True)


@refused("no footer|no readable")
def table_of_nothing(store: Path) -> None:
    """An empty file."""
    (store / TOKENS).write_bytes(b"")
    repin(store, files=True)


@refused("in the manifest")
def table_with_other_rows_than_the_manifest_says(store: Path) -> None:
    """Fewer by one."""
    _count(store, "tokens", pq.read_metadata(store / TOKENS).num_rows + 1)


class Explodes:
    """What a pickle of it does when it is opened: it leaves a file behind."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("a-pickle-was-opened", "w"))


@harmless
def table_with_pickled_types(store: Path) -> None:
    """Extension types of Arrow and indexes of pandas, in the metadata."""
    table = pq.read_table(store / TOKENS)
    marks = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Explodes()),
    }
    fields = [field.with_metadata(marks) if field.name == "text" else field for field in table.schema]
    other = {b"pandas": json.dumps({"index_columns": [{"kind": "range"}], "columns": 7}).encode(), b"x": b"\xff" * 99}
    pq.write_table(table.cast(pa.schema(fields, other)), store / TOKENS)
    repin(store, files=True)


@harmless
def table_that_no_question_reads(store: Path) -> None:
    """Of an unknown name, with columns of any kind."""
    pq.write_table(pa.table({name: [1] for name in ODD}), store / SEGMENT / "extra.parquet")

    def change(value: Any) -> None:
        value["files"].append({"path": "extra.parquet", "bytes": 0, "sha256": "0" * 64, "crc32c": "0" * 8})
        value["rows"]["extra"] = 1

    edited(store / SEGMENT / "segment.json", change)
    repin(store, files=True)
