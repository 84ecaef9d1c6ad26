"""This file checks a map against its frame and cuts it into blocks that stay in the processor's cache."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame

CELLS = 1 << 18
"""Weights per block: 1 MiB of float32. On [12, 128, 128] blocks of 2^16 are a fifth slower, for their calls; from
4 MiB on, scratch arrays come as fresh pages from the system."""


def check_map(weights: FloatArray, frame: Frame, *, n_axes: int | None = None) -> None:
    """Raise BadInput unless the last two axes of `weights` are those of `frame` (and it has `n_axes` axes)."""
    expected = (len(frame.queries), len(frame.keys))
    if weights.ndim < 2 or weights.shape[-2:] != expected or (n_axes is not None and weights.ndim != n_axes):
        axes = "[head, query, key]" if n_axes == 3 else "[..., query, key]"
        raise BadInput(
            "reducing an attention map",
            f"weights of shape {list(weights.shape)}",
            f"{axes} with {expected[0]} queries and {expected[1]} keys",
            "Cut padding off and pass the frame of the same example and kind.",
        )


def work_dtype(weights: FloatArray) -> np.dtype[np.floating]:
    """The type to compute in: that of `weights`, but at least float32 (float16 has too few digits to add in)."""
    dtype: np.dtype[np.floating] = np.result_type(weights.dtype, np.float32)
    return dtype


def spans(length: int, step: int) -> Iterator[slice]:
    """Slices of at most `step` that cover 0 to `length`, in order."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def block_steps(n_queries: int, n_keys: int) -> tuple[int, int]:
    """How many heads, and how many queries of each, make one block of at most CELLS weights.

    Short maps go several heads at a time; a map larger than a block goes by rows of one head, of which
    there is always at least one.
    """
    heads = CELLS // max(n_queries * n_keys, 1)
    if heads >= 1:
        return heads, max(n_queries, 1)
    return 1, max(CELLS // n_keys, 1)


def blocks(weights: FloatArray) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Heads, queries, and their weights [head, query, key] in float32 or float64, block by block over `weights`.

    Every row is whole. A block may be a view of `weights`.
    """
    n_heads, n_queries, n_keys = weights.shape
    head_step, query_step = block_steps(n_queries, n_keys)
    dtype = work_dtype(weights)
    for queries in spans(n_queries, query_step):
        for heads in spans(n_heads, head_step):
            yield heads, queries, weights[heads, queries].astype(dtype, copy=False)


def gather(block: FloatArray, index: NDArray[np.intp]) -> FloatArray:
    """The weights [head, query] of `block` [head, query, key] at the keys `index` [head, query]."""
    heads, queries = index.shape
    found: FloatArray = block[np.arange(heads)[:, None], np.arange(queries), index]
    return found
