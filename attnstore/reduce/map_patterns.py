"""This file measures how far a map is vertical, diagonal or in blocks (Kovaleva et al. 2019, section 4.1)."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns, indices
from attnstore.reduce.rows import exact_entropy


def pattern_facts(weights: FloatArray, frame: Frame, rows: Columns) -> dict[str, NDArray[np.float64]]:
    """Numbers, each float64 [head], that tell the paper's classes of maps apart; it labelled maps by eye.

    Means over all query rows, special tokens included:
    `vertical`: weight on special keys; `neighbour`: weight on the preceding and the following key, and `diagonal`:
    weight on the query itself, where that key is not special; `spread`: exact entropy / ln(visible keys), 0-1, over
    the rows that see two keys or more (in a causal map a row sees the keys up to itself).

    `block`: mean over the queries that have a part of the weight on keys of their part, less that part's share of the
    tokens that have one (not only of those that a causal row sees); -1 to 1, below 0 where special keys draw the
    weight. NaN where fewer than two parts occur.

    `neighbour`, `diagonal` and `block` are NaN in a cross map, `spread` where no row sees two keys.
    `rows`: `part` [token], 0 or 1, -1 for special tokens; not read in a cross map. BadInput where it does not fit.
    """
    check_map(weights, frame, n_axes=3)
    n_heads, n_queries, n_keys = weights.shape
    facts = {
        "vertical": weights[:, :, frame.keys.special].sum(axis=(1, 2), dtype=np.float64) / n_queries,
        "neighbour": np.full(n_heads, np.nan),
        "diagonal": np.full(n_heads, np.nan),
        "block": np.full(n_heads, np.nan),
        "spread": _spread(weights, frame),
    }
    if frame.is_self:
        beside = _on_diagonal(weights, frame, 1) + _on_diagonal(weights, frame, -1)
        facts["neighbour"], facts["diagonal"] = beside / n_queries, _on_diagonal(weights, frame, 0) / n_queries
        facts["block"] = _block(weights, indices(rows, "part", 2, lowest=-1, length=n_keys))
    return facts


def _on_diagonal(weights: FloatArray, frame: Frame, offset: int) -> NDArray[np.float64]:
    """The weights [head] from queries to the keys `offset` tokens on that are not special, summed."""
    first = max(offset, 0)
    found = weights.diagonal(offset, 1, 2)
    kept = ~frame.keys.special[first : first + found.shape[1]]
    total: NDArray[np.float64] = found[:, kept].sum(axis=1, dtype=np.float64)
    return total


def _block(weights: FloatArray, part: NDArray[np.intp]) -> NDArray[np.float64]:
    member = part[:, None] == [0, 1]  # [token, part]
    counts = np.count_nonzero(member, axis=0)
    if not counts.all():
        return np.full(weights.shape[0], np.nan)
    inside = np.zeros(weights.shape[0])
    for heads, queries, block in blocks(weights):
        per_part = block @ member.astype(block.dtype)
        inside[heads] += np.where(member[queries], per_part, 0).sum(axis=(1, 2), dtype=np.float64)
    # Every one of the counts[p] queries of part p would give its part counts[p] / counts.sum() by chance.
    by_chance = (counts**2).sum() / counts.sum()
    mean: NDArray[np.float64] = (inside - by_chance) / counts.sum()
    return mean


def _spread(weights: FloatArray, frame: Frame) -> NDArray[np.float64]:
    n_heads, n_queries, n_keys = weights.shape
    visible = np.arange(1, n_queries + 1) if frame.causal else np.full(n_queries, n_keys)
    wide = visible > 1
    if not wide.any():
        return np.full(n_heads, np.nan)
    per_row = np.divide(1, np.log(visible), out=np.zeros(n_queries), where=wide)
    total = np.zeros(n_heads)
    for heads, queries, block in blocks(weights):
        total[heads] += exact_entropy(block, np.empty_like(block)) @ per_row[queries]
    return total / np.count_nonzero(wide)
