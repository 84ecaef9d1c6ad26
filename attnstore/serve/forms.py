"""This file writes an answer as JSON, CSV or Arrow, cut to the rows and bytes that are allowed."""

import datetime
import decimal
import itertools
import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from attnstore.serve.problems import Problem
from attnstore.serve.published import cited
from attnstore.show.formats import arrow_bytes
from attnstore.store.answer_text import csv_text
from attnstore.store.result import Result

TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
"""The forms of an answer and what HTTP calls them."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as bytes; `truncated` where rows were left out."""

    body: bytes
    rows: int
    truncated: bool


def write(result: Result, form: str, most_rows: int, most_bytes: int, elapsed_ms: float) -> Written:
    """The first rows of an answer that fit both limits; Problem where not even one does."""
    table = result.to_arrow()
    truncated = table.num_rows > most_rows
    table = table.slice(0, most_rows)
    while True:
        # Text needs at most a few times the bytes of Arrow; what it really needs is seen when it is written.
        body = b"" if table.nbytes > most_bytes else _body(result, table, form, truncated, elapsed_ms)
        if body and len(body) <= most_bytes:
            return Written(body, table.num_rows, truncated)
        if table.num_rows <= 1:
            raise Problem("too-large", "one row is larger than an answer may be", f"{most_bytes} bytes", "Ask for less")
        share = most_bytes / max(len(body), table.nbytes, 1)
        table, truncated = table.slice(0, max(1, min(int(table.num_rows * share * 0.9), table.num_rows - 1))), True
        table = pa.table(table.take(list(range(table.num_rows))))  # a slice counts the bytes of the whole


def _body(result: Result, table: pa.Table, form: str, truncated: bool, elapsed_ms: float) -> bytes:
    try:
        return _told(result, table, form, truncated, elapsed_ms)
    except (OverflowError, ValueError):  # a time before or after those that Python knows
        return _told(result, _with_times_as_text(table), form, truncated, elapsed_ms)


def _with_times_as_text(table: pa.Table) -> pa.Table:
    try:
        columns = [
            column.cast(pa.string()) if pa.types.is_temporal(column.type) else column for column in table.columns
        ]
        for column in columns:
            column.to_pylist()
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise Problem("bad-sql", "a value that has no text", "", "Cast it to VARCHAR, or ask for Arrow") from error
    return pa.table(columns, names=table.column_names)


def _told(result: Result, table: pa.Table, form: str, truncated: bool, elapsed_ms: float) -> bytes:
    if form == "csv":
        return csv_text(table).encode()
    about = {
        "truncated": truncated,
        "snapshot": result.provenance.content_hash,
        "elapsed_ms": round(elapsed_ms, 1),
        "cite": _plain(cited(result)),
    }
    if form == "arrow":
        metadata = {b"attnstore": json.dumps(about).encode(), **(table.schema.metadata or {})}
        return arrow_bytes(table.replace_schema_metadata(metadata))
    columns = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    rows = zip(*(_values(column.combine_chunks()) for column in table.columns), strict=True)
    # NaN and the infinities, which JSON does not know, become null.
    return orjson.dumps({"columns": columns, "rows": list(rows), **about}, default=_plain)


def _values(array: pa.Array) -> list[Any]:
    """The values of a column for JSON. Numbers in lists are taken out of the array together: one by one takes long."""
    kind = array.type
    if pa.types.is_floating(kind):  # null becomes NaN, which is written as null
        numbers: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return numbers
    if pa.types.is_list(kind):
        items, ends = _values(array.values), array.offsets.to_pylist()
        found = [items[begin:end] for begin, end in itertools.pairwise(ends)]
        return [value if there else None for value, there in zip(found, array.is_valid().to_pylist(), strict=True)]
    values: list[Any] = array.to_pylist()
    if pa.types.is_nested(kind) or pa.types.is_decimal(kind):
        return [_plain(value) for value in values]
    return values


def _plain(value: Any) -> Any:
    """A value with nothing in it that JSON does not know: NaN and the infinities become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, decimal.Decimal | uuid.UUID | datetime.timedelta):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
