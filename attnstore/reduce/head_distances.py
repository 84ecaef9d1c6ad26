"""This file measures how differently the heads of one example attend, all pairs of them."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.columns import Columns
from attnstore.reduce.divergence import condensed, jensen_shannon, sampled_rows


def head_distances(
    weights: FloatArray,
    frame: Frame | None = None,
    rows: Columns | None = None,
    *,
    eps: float = 1e-3,
    sampled: int = 0,
    compiled: bool | None = None,
) -> dict[str, NDArray[np.generic]]:
    """`js` float32 [1, pair] and `n_rows` int32 [1] of `weights` [layer, head, query, key] or [head, query, key].

    The Jensen-Shannon divergence in nats, summed over `sampled` evenly spaced query rows (0: all), of every pair of
    heads a < b, (0, 1), (0, 2), … (1, 2), …, the heads of all layers one after another (Clark et al. 2019,
    section 6). `frame` and `rows` are not read: every row and column counts, also those of special tokens.
    Added up in float32, within 5e-6 of the mean; `compiled` as in `jensen_shannon`.
    """
    maps = weights.reshape(-1, *weights.shape[-2:])
    chosen = sampled_rows(maps.shape[1], sampled)
    js = condensed(jensen_shannon(maps, eps=eps, rows=chosen, compiled=compiled, double_up_to=0))
    return {"n_rows": np.array([len(chosen)], np.int32), "js": js.astype(np.float32)[None]}
