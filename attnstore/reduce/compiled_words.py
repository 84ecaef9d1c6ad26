"""This file compiles the search for the words that attend to each other most with numba."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import IntArray
from attnstore.reduce.pieces import Pieces

Floats = NDArray[np.float32]
WordLoop = Callable[..., None]


def fill_words(
    weights: Floats,
    queries: Pieces,
    keys: Pieces,
    is_self: bool,
    to: tuple[IntArray, Floats],
    by: tuple[IntArray, Floats],
) -> None:
    """For each unit the other unit that it attends to most and the one that attends to it most, with the weights.

    Units are numbered as in `queries` and `keys`. Into `to` and `by` [head, unit], which hold -1 and 0. Pieces of a
    key word are added, those of a query word averaged: NumPy's sums, to the bit for words of up to eight pieces.
    """
    places = (queries.start, queries.count, keys.start, keys.count)
    compiled_words()(
        np.require(weights, requirements=("C", "W")), *(place.astype(np.int64) for place in places), is_self, *to, *by
    )


@cache
def compiled_words() -> WordLoop:
    """The compiled loop. Compiled at the first call of a process; keeps nothing on disk, lets go of the lock."""
    import numba

    def words(
        weights: Any,
        query_start: Any,
        query_count: Any,
        key_start: Any,
        key_count: Any,
        is_self: Any,
        to_unit: Any,
        to_weight: Any,
        by_unit: Any,
        by_weight: Any,
    ) -> None:
        row, merged = np.empty(weights.shape[2], np.float32), np.empty(key_start.size, np.float32)
        for head in range(weights.shape[0]):
            for query in range(query_start.size):
                first, pieces = query_start[query], query_count[query]
                row[:] = weights[head, first]
                if pieces > 1:
                    for piece in range(1, pieces):
                        row += weights[head, first + piece]
                    row /= np.float32(pieces)
                for key in range(key_start.size):
                    total = row[key_start[key]]
                    for piece in range(1, key_count[key]):
                        total += row[key_start[key] + piece]
                    merged[key] = total
                if is_self:
                    merged[query] = 0
                for key in range(key_start.size):
                    # The lowest unit stays on a tie: units come in order.
                    if merged[key] > to_weight[head, query]:
                        to_weight[head, query], to_unit[head, query] = merged[key], key
                    if is_self and merged[key] > by_weight[head, key]:
                        by_weight[head, key], by_unit[head, key] = merged[key], query

    numbers = ", ".join(["int64[::1]"] * 4)
    found = "int32[:, ::1], float32[:, ::1], int32[:, ::1], float32[:, ::1]"
    compiled: WordLoop = numba.njit(f"void(float32[:, :, ::1], {numbers}, boolean, {found})", nogil=True)(words)
    return compiled
