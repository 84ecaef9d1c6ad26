"""This file holds the patterns that a map is compared with: repeated tokens, and distance on a grid of patches."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import BoolArray, FloatArray


def duplicate_pattern(ids: ArrayLike) -> BoolArray:
    """Which keys are earlier copies of the query's token: [query, key], strictly lower triangular.

    `ids` are the token numbers [token].
    """
    tokens = np.asarray(ids)
    if tokens.ndim != 1:
        raise BadInput("looking for repeated tokens", f"ids of shape {list(tokens.shape)}", "[token]")
    return np.tril(tokens[:, None] == tokens, k=-1)


def induction_pattern(ids: ArrayLike) -> BoolArray:
    """Which keys follow an earlier copy of the query's token: [query, key], strictly lower triangular.

    `ids` are the token numbers [token]. A token that repeats its neighbour would find itself there; that is
    not an edge.
    """
    pattern = np.zeros_like(duplicates := duplicate_pattern(ids))
    pattern[:, 1:] = duplicates[:, :-1]
    return np.tril(pattern, k=-1)


def grid_distance(
    weights: FloatArray, rows: int, columns: int, *, patch: float, prefix: int = 1, renormalise: bool = False
) -> NDArray[np.float64]:
    """Mean attention distance [...] in pixels of `weights` [..., query, key] over a grid of image patches.

    The first `prefix` tokens ([CLS], registers) are dropped; then follow rows * columns patches, row by row,
    of `patch` pixels a side. Distances between patch centres are weighted by attention and averaged over
    patch queries, as usual without renormalising; with `renormalise` the rows are first divided by their
    weight on patches (a row without any counts 0). BadInput where the sizes do not fit.
    """
    size = prefix + rows * columns
    if min(rows, columns) < 1 or prefix < 0 or weights.ndim < 2 or weights.shape[-2:] != (size, size):
        raise BadInput(
            "measuring distances between patches",
            f"weights of shape {list(weights.shape)}",
            f"[..., {size}, {size}]: {prefix} prefix tokens and {rows} x {columns} patches",
        )
    row, column = np.divmod(np.arange(rows * columns), columns)
    distance = patch * np.hypot(row[:, None] - row, column[:, None] - column)
    between = weights[..., prefix:, prefix:].astype(np.float64, copy=False)
    moved = np.vecdot(between, distance)
    if renormalise:
        mass = between.sum(axis=-1)
        moved = np.divide(moved, mass, out=np.zeros_like(moved), where=mass > 0)
    mean: NDArray[np.float64] = moved.mean(axis=-1)
    return mean
