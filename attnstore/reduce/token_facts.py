"""This file computes the facts of every query token: its most attended key, that weight, and its entropy."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import block_steps, check_map, spans, work_dtype
from attnstore.reduce.rows import Rows, exact_entropy, largest

TokenFacts = dict[str, NDArray[np.generic]]


def token_facts(weights: FloatArray, frame: Frame) -> TokenFacts:
    """The columns of TOKEN_FACTS, each [head, query], of `weights` [head, query, key].

    `argmax` int32, the lowest key on a tie; `max` float32, 0-1; `entropy_nats` float32, without smoothing and
    with 0 ln 0 = 0. In a causal frame, weights on keys after the query must be 0.
    """
    check_map(weights, frame, n_axes=3)
    n_heads, n_queries, n_keys = weights.shape
    dtype = work_dtype(weights)
    argmax = np.empty((n_heads, n_queries), np.int32)
    top = np.empty((n_heads, n_queries), np.float32)
    entropy = np.empty((n_heads, n_queries), np.float32)
    head_step, query_step = block_steps(n_queries, n_keys)
    for queries in spans(n_queries, query_step):
        seen = queries.stop if frame.causal else n_keys
        for heads in spans(n_heads, head_step):
            block = weights[heads, queries, :seen].astype(dtype, copy=False)
            argmax[heads, queries], top[heads, queries] = largest(block)
            entropy[heads, queries] = exact_entropy(block, np.empty(block.shape, dtype))
    return {"argmax": argmax, "max": top, "entropy_nats": entropy}


def token_columns(rows: Rows) -> TokenFacts:
    """What `token_facts` returns, from row statistics that are already there."""
    # Copies, so that a caller who keeps them does not keep the whole table alive.
    columns = {"max": "max", "entropy_nats": "entropy"}
    facts: TokenFacts = {"argmax": rows.argmax}
    return facts | {column: rows.named(name).astype(np.float32) for column, name in columns.items()}
