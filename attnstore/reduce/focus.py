"""This file finds the one token that most queries of a head attend to, and the weight that a trigger receives."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns, column


def focus_facts(weights: FloatArray, frame: Frame, rows: Columns) -> dict[str, NDArray[np.generic]]:
    """Where the rows of a map come together (Lyu et al. 2022), each [head], of `weights` [head, query, key].

    `focus` int32: the key that is the largest of most rows; the lowest on a tie, within a row as between keys.
    `focusing` float64: of how many of the `n_queries` rows, special tokens included. `focus_sum`: the weight on it,
    summed over all rows. `trigger_sum`: the same on the tokens of a trigger; NaN without one.

    The tokens of a trigger are one key, that of the first of them, whose weight is their sum. `rows`: `trigger` [key],
    whether it belongs to one. BadInput where it does not fit the frame.
    """
    check_map(weights, frame, n_axes=3)
    n_heads, n_queries, n_keys = weights.shape
    trigger = np.flatnonzero(column(rows, "trigger", n_keys).astype(bool))
    keys = np.delete(np.arange(n_keys), trigger[1:])
    largest, received = np.zeros((n_heads, len(keys))), np.zeros((n_heads, len(keys)))
    for heads, _, block in blocks(weights):
        merged = block
        if len(trigger) > 1:
            merged = block[..., keys]
            merged[..., trigger[0]] = block[..., trigger].sum(axis=-1)
        largest[heads] += (merged.argmax(axis=-1)[..., None] == np.arange(len(keys))).sum(axis=1)
        received[heads] += merged.sum(axis=1, dtype=np.float64)
    head, place = np.arange(n_heads), largest.argmax(axis=1)
    return {
        "n_queries": np.full(n_heads, float(n_queries)),
        "focus": keys[place].astype(np.int32),
        "focusing": largest[head, place],
        "focus_sum": received[head, place],
        # Keys before the first token of a trigger keep their place.
        "trigger_sum": received[:, trigger[0]] if len(trigger) else np.full(n_heads, np.nan),
    }
