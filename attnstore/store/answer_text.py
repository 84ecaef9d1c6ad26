"""This file writes the rows of an answer as text in full precision: CSV, whose bytes a citation names, and JSON."""

import datetime
import decimal
import json
import math
from collections.abc import Iterator, Mapping

import pyarrow as pa


def csv_text(table: pa.Table) -> str:
    """A line of names and a line for each row, in full precision.

    Null is an empty field and an empty text is "" in quotes; NaN is nan; lists are JSON.
    """
    # Readers skip an empty line, so a null that is alone on its line is written like an empty text.
    null = '""' if table.num_columns == 1 else ""
    lines = [",".join(map(_quoted, table.column_names))]
    lines += [",".join(null if value is None else _csv_field(value) for value in row) for row in each_row(table)]
    return "\n".join(lines) + "\n"


def each_row(table: pa.Table) -> Iterator[tuple[object, ...]]:
    """The rows as Python values, a batch at a time, whatever the columns are called."""
    for batch in table.to_batches(max_chunksize=65_536):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def as_json(value: object) -> str:
    """One value as JSON; NaN and the infinities become null."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> object:
    """The value as JSON knows it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        # DuckDB gives sums of integers as decimals without a fraction.
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else float(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    return str(value)


def _csv_field(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | decimal.Decimal):
        return str(value)
    plain = _plain(value)
    return _quoted(plain if isinstance(plain, str) else as_json(plain))


def _quoted(text: str) -> str:
    is_bare = text and text.strip() == text and not any(mark in text for mark in ',"\r\n')
    return text if is_bare else '"' + text.replace('"', '""') + '"'
