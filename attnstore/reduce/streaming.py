"""This file measures how much attention a window of the first and the most recent tokens would keep."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns


def streaming_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, first: int = 4, recent: int = 64
) -> dict[str, NDArray[np.float64]]:
    """`n_queries` and `mass_sum`, each float64 [head]: the weight within the window, summed over queries.

    The window of a query holds the first `first` keys and those less than `recent` tokens away from it (Xiao et
    al. 2023; Xiao et al. 2024): in a causal map the last `recent` keys up to and with the query itself, in others
    as many after it too. A key that is both counts once. `mass_sum` is NaN in a cross map. `rows` is not read.
    BadInput for negative numbers.
    """
    check_map(weights, frame, n_axes=3)
    if min(first, recent) < 0:
        raise BadInput("measuring a window of attention", f"first = {first}, recent = {recent}", "0 or more")
    n_heads, n_queries, n_keys = weights.shape
    mass = np.full(n_heads, 0.0 if frame.is_self else np.nan)
    key = np.arange(n_keys)
    if frame.is_self:
        for heads, queries, block in blocks(weights):
            query = np.arange(queries.start, queries.stop)[:, None]
            window = (key < first) | (np.abs(query - key) < recent)
            mass[heads] += np.vecdot(block, window.astype(block.dtype)).sum(axis=-1, dtype=np.float64)
    return {"n_queries": np.full(n_heads, float(n_queries)), "mass_sum": mass}
