"""This file measures whether rows pass on few tokens or mix many."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns
from attnstore.reduce.rows import exact_entropy


def transfer_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, top: int = 5, above: float = 0.1
) -> dict[str, NDArray[np.float64]]:
    """`n_queries` and sums over all query rows, each float64 [head], special tokens included.

    `effective_keys_sum`: exp(entropy), which is n for equal weights on n keys; `inverse_square_sum`: 1 / the sum of
    squared weights, likewise; `top1_sum`: the largest weight; `top_sum`: the `top` largest weights together;
    `keys_above_sum`: the number of keys that weigh more than `above` (a weight equal to it does not count).
    Rows must hold some weight. `rows` is not read. BadInput for `top` below 1 or `above` outside 0 to 1.
    """
    check_map(weights, frame, n_axes=3)
    if top < 1 or not 0 <= above <= 1:
        raise BadInput("measuring transfer", f"top = {top}, above = {above}", "top >= 1 and 0 <= above <= 1")
    n_heads, n_queries, n_keys = weights.shape
    names = ("effective_keys_sum", "inverse_square_sum", "top1_sum", "top_sum", "keys_above_sum")
    sums = np.zeros((len(names), n_heads))
    cut = max(n_keys - top, 0)
    for heads, _, block in blocks(weights):
        entropy = exact_entropy(block, np.empty_like(block))
        largest = np.partition(block, cut, axis=-1)[..., cut:] if cut else block
        per_row = (
            np.exp(entropy),
            1 / np.vecdot(block, block),
            block.max(axis=-1),
            largest.sum(axis=-1),
            np.count_nonzero(block > above, axis=-1),
        )
        sums[:, heads] += [values.sum(axis=-1, dtype=np.float64) for values in per_row]
    return {"n_queries": np.full(n_heads, float(n_queries))} | dict(zip(names, sums, strict=True))
