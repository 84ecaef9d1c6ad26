"""This file reads the columns that come with a map, such as the words of its example, and refuses those that do not
fit it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.pieces import Index

Columns = Mapping[str, NDArray[Any]]
"""What is known about the words, tokens, links or mentions of one example: arrays of one axis, by name."""


def column(rows: Columns, name: str, length: int | None = None) -> NDArray[Any]:
    """The column `name` [row]; BadInput where it is absent, has several axes, or not `length` entries."""
    if name not in rows:
        found = f"only the columns {', '.join(rows)}" if rows else "no columns"
        raise BadInput("reducing an attention map", found, f"a column {name}")
    values = np.asarray(rows[name])
    if values.ndim != 1 or length not in (None, len(values)):
        expected = "[row]" if length is None else f"[{length}]"
        raise _refused(name, f"shape {list(values.shape)}", expected)
    return values


def indices(rows: Columns, name: str, end: int | None, *, lowest: int = 0, length: int | None = None) -> Index:
    """The column `name` [row] of whole numbers from `lowest` to `end`, exclusive (None: no end).

    BadInput where a number is outside, and where `column` raises it.
    """
    values = column(rows, name, length)
    if not len(values):
        return np.zeros(0, np.intp)
    if values.dtype.kind not in "iu":
        raise _refused(name, f"type {values.dtype}", "whole numbers")
    outside = (values < lowest) | ((values >= end) if end is not None else False)
    if outside.any():
        expected = f"at least {lowest}" if end is None else f"{lowest} to {end}, exclusive"
        raise _refused(name, f"{values[outside][0]}", expected)
    found: Index = values.astype(np.intp)
    return found


def first_copies(values: NDArray[Any]) -> Index:
    """For each of `values` [row] the first row with an equal one [row]."""
    first: dict[object, int] = {}
    return np.array([first.setdefault(value, row) for row, value in enumerate(values.tolist())], np.intp)


def _refused(name: str, found: str, expected: str) -> BadInput:
    return BadInput(f"reading the column {name} that comes with an attention map", found, expected)
