"""This file measures how much attention goes to keys at each distance from the query."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import check_map
from attnstore.reduce.columns import Columns


def offset_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, reach: int = 16
) -> dict[str, NDArray[np.float64]]:
    """`n_queries` float64 [head], and `mass` float64 [head, offset]: the weight at each offset, summed over queries.

    Offsets run from -reach to reach in tokens, key less query: entry `reach` is the weight from tokens to
    themselves, the entry after it that to the following token (Guan et al. 2020 cluster heads on such profiles).
    Special tokens are included. Of the n_queries queries, |offset| have no key at an offset; 0 where all lack one.
    `mass` is NaN in a cross map. `rows` is not read. BadInput for a negative `reach`.
    """
    check_map(weights, frame, n_axes=3)
    if reach < 0:
        raise BadInput("measuring attention by offset", f"reach = {reach}", "0 or more")
    n_heads, n_queries, _ = weights.shape
    mass = np.full((n_heads, 2 * reach + 1), 0.0 if frame.is_self else np.nan)
    nearest = min(reach, n_queries - 1)
    if frame.is_self:
        for offset in range(-nearest, nearest + 1):
            mass[:, reach + offset] = weights.diagonal(offset, 1, 2).sum(axis=1, dtype=np.float64)
    return {"n_queries": np.full(n_heads, float(n_queries)), "mass": mass}
