"""This file measures how much attention chosen tokens receive."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray


def feature_attention(
    weights: FloatArray, columns: ArrayLike, *, queries: ArrayLike | None = None
) -> NDArray[np.float64]:
    """The largest, over the key tokens `columns`, of the mean weight that queries give it [...] (0-1).

    `weights` [..., query, key] (Kovaleva et al. 2019, section 4.4: every query, special tokens included).
    `queries` narrows the mean, to the row of [CLS] for instance (their section 4.5). Both are token
    positions or booleans [token]. NaN where `columns` or `queries` choose nothing: an example without the
    feature says nothing about it. BadInput for a position outside the map.
    """
    key_chosen = _positions(columns, weights.shape[-1], "columns")
    if queries is not None:
        weights = weights.take(_positions(queries, weights.shape[-2], "queries"), axis=-2)
    if not len(key_chosen) or not weights.shape[-2]:
        return np.full(weights.shape[:-2], np.nan)
    received = weights.take(key_chosen, axis=-1).mean(axis=-2, dtype=np.float64)
    most: NDArray[np.float64] = received.max(axis=-1)
    return most


def _positions(chosen: ArrayLike, length: int, name: str) -> NDArray[np.intp]:
    given = np.asarray(chosen)
    if given.dtype == bool and given.shape == (length,):
        return np.flatnonzero(given)
    positions = given.astype(np.intp) if given.size == 0 or given.dtype.kind in "iu" else None
    if positions is None or positions.ndim != 1 or ((positions < 0) | (positions >= length)).any():
        raise BadInput(
            "measuring attention to chosen tokens",
            f"{name} = {given.tolist()!r}",
            f"positions from 0 to {length - 1}, or {length} booleans",
        )
    return positions
