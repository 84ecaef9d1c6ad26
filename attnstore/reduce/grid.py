"""This file measures attention on a grid of patches or codes: how far it goes, and in which direction."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns, indices
from attnstore.reduce.pieces import Index


def grid_facts(weights: FloatArray, frame: Frame, rows: Columns) -> dict[str, NDArray[np.float64]]:
    """How far the patches of an image look, each float64 [head], of `weights` [head, query, key].

    `n_queries`: tokens that have a place on the grid, which alone are queries and keys here. `distance_sum`: pixels
    between the centres of query and key, weighted by attention and summed over queries; what a query gives to special
    tokens counts as no distance, as in the usual code for mean attention distance (Dosovitskiy et al. 2021; Raghu et
    al. 2021). `distance_renormalised_sum`: the same with each row divided by its weight on the grid; a row without any
    counts 0. NaN in a cross map.

    `rows`: `token`, `row`, `col`, `height`, `width` [place]: the tokens on the grid, where they lie, and the pixels of
    a patch, which is 1 x 1 for distances in steps. BadInput where they do not fit the frame.
    """
    check_map(weights, frame, n_axes=3)
    token, row, col, high, wide = _grid(frame, rows, "height", "width")
    distance = np.hypot((row[:, None] - row) * high[:, None], (col[:, None] - col) * wide[:, None])
    sums = np.zeros((2, weights.shape[0]))
    for heads, own, between in _between(weights, token):
        moved = np.vecdot(between, distance[own].astype(between.dtype)).astype(np.float64)
        mass = between.sum(axis=-1, dtype=np.float64)
        sums[0, heads] += moved.sum(axis=-1)
        sums[1, heads] += np.divide(moved, mass, out=np.zeros_like(moved), where=mass > 0).sum(axis=-1)
    if not frame.is_self:
        sums[:] = np.nan
    return {
        "n_queries": np.full(weights.shape[0], float(len(token))),
        "distance_sum": sums[0],
        "distance_renormalised_sum": sums[1],
    }


def grid_offset_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, reach: int = 3
) -> dict[str, NDArray[np.generic]]:
    """One row for each step on the grid, down `dy` and right `dx` from query to key, of at most `reach` either way.

    `dy`, `dx`, `n_queries` int32 [row]: of the queries on the grid, those that have a key there; steps that no query
    can take have no row. `mass` float64 [head, row]: the weight on these keys, summed. None in a cross map.

    `rows`: `token`, `row`, `col` [place], as for `grid_facts`. BadInput where they do not fit the frame or two tokens
    have one place, and for a negative `reach`.
    """
    check_map(weights, frame, n_axes=3)
    if reach < 0:
        raise BadInput("measuring attention by steps on a grid", f"reach = {reach}", "0 or more")
    token, row, col = _grid(frame, rows)
    if len({*zip(row.tolist(), col.tolist(), strict=True)}) < len(token):
        raise BadInput("measuring attention by steps on a grid", "two tokens at one place", "one at each")
    down, right = row - row[:, None], col - col[:, None]
    # No step is longer than the grid, and the counts below are as large as the square of the reach.
    reach = min(reach, max(int(np.abs(one).max(initial=0)) for one in (down, right)))
    near = (np.abs(down) <= reach) & (np.abs(right) <= reach) & frame.is_self
    side = 2 * reach + 1
    step = (down + reach) * side + right + reach
    counts = np.bincount(step[near], minlength=side * side)
    mass = np.zeros((weights.shape[0], side * side))
    for heads, own, between in _between(weights, token):
        chosen = near[own]
        for head, values in zip(range(heads.start, heads.stop), between, strict=True):
            mass[head] += np.bincount(step[own][chosen], values[chosen], side * side)
    there = np.flatnonzero(counts)
    return {
        "dy": (there // side - reach).astype(np.int32),
        "dx": (there % side - reach).astype(np.int32),
        "n_queries": counts[there].astype(np.int32),
        "mass": mass[:, there],
    }


def _grid(frame: Frame, rows: Columns, *sizes: str) -> list[Index]:
    """Token, row, column and `sizes` of every place on the grid, in order of the tokens."""
    token = indices(rows, "token", len(frame.queries))
    order = np.argsort(token)
    places = (indices(rows, name, None, length=len(token)) for name in ("row", "col"))
    others = (indices(rows, name, None, lowest=1, length=len(token)) for name in sizes)
    return [column[order] for column in (token, *places, *others)]


def _between(weights: FloatArray, token: Index) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Heads, places of the queries, and the weights [head, query, key] between places alone, block by block."""
    for heads, queries, block in blocks(weights):
        first, stop = np.searchsorted(token, (queries.start, queries.stop))
        if first < stop:
            own = token[first:stop] - queries.start
            yield heads, slice(first, stop), block[:, own][:, :, token]
