"""This file measures how much attention every token receives."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import BoolArray, FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns


def received_facts(weights: FloatArray, frame: Frame, rows: Columns) -> dict[str, NDArray[np.generic]]:
    """`token` int32 [row], one row for every key token, and weights it receives, float32 [head, row], 0-1.

    `received`: mean over all query rows, special tokens included (Kovaleva et al. 2019, section 4.4).
    `received_later`: mean over the query rows from the token itself on (attention sinks, Gu et al. 2024); NaN in
    a cross map, where a query has no place among the keys. `from_cls`, `from_sep`: mean over the rows of [CLS] and
    of [SEP] (Kovaleva et al., section 4.5); NaN without one. `rows` is not read.
    """
    check_map(weights, frame, n_axes=3)
    n_heads, n_queries, n_keys = weights.shape
    every, later = np.zeros((n_heads, n_keys)), np.full((n_heads, n_keys), np.nan)
    if frame.is_self:
        later[:] = 0
    for heads, queries, block in blocks(weights):
        summed = block.sum(axis=1, dtype=np.float64)
        every[heads] += summed
        if frame.is_self and not frame.causal:
            summed = np.tril(block, queries.start).sum(axis=1, dtype=np.float64)
        later[heads] += summed
    return {
        "token": np.arange(n_keys, dtype=np.int32),
        "received": (every / n_queries).astype(np.float32),
        "received_later": (later / np.maximum(n_queries - np.arange(n_keys), 1)).astype(np.float32),
        "from_cls": _mean_of(weights, frame.queries.cls),
        "from_sep": _mean_of(weights, frame.queries.sep),
    }


def _mean_of(weights: FloatArray, queries: BoolArray) -> NDArray[np.float32]:
    """The mean [head, key] of the chosen query rows; NaN where none is."""
    if not queries.any():
        return np.full((weights.shape[0], weights.shape[2]), np.nan, np.float32)
    mean: NDArray[np.float32] = weights[:, queries].mean(axis=1, dtype=np.float64).astype(np.float32)
    return mean
