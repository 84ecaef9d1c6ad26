"""This file measures how much attention goes to the previous token, to copies of a token, and to what followed them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import BoolArray, FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns, column, first_copies

PATTERNS = ("previous", "next", "duplicate", "duplicate_after", "induction")
"""Pairs of a query and a key: the token before; the token after; an earlier copy of the query; a later copy; the token
after an earlier copy."""


def induction_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, exclude_bos: bool = False, exclude_current: bool = False
) -> dict[str, NDArray[np.generic]]:
    """One row for each of PATTERNS, of which a causal map has no `next` and no `duplicate_after`.

    `pattern`: its name [row]. `n_queries` int32 [row]: the tokens of the text, special ones left out. `n_pairs` int32
    [row]: pairs of the pattern, both of them tokens of the text. `weight` float64 [head, row]: the weight on these
    pairs, summed. `total` float64 [head, row]: all weight of the queries' rows that counts, on special tokens too.
    `uniform`, `uniform_total` float64 [row]: weight and total if every query weighed all keys that it sees alike.

    With D the 0/1 matrix of the pairs, weight / total is the detector's sum(A * D) / sum(A), weight / n_pairs the mean
    weight on a pair, and total - 2 * weight + n_pairs the sum of |A - D|. In a text of random tokens that stands twice,
    n tokens each, the pairs of `induction` are (i, i - n + 1) for i >= n, n of them.

    `induction` has neither the query itself as key (two equal tokens in a row) nor a later token. It is defined by what
    a token may see: where a map is not causal it has no pairs, and NaN for the weights. (With masked tokens an encoder
    could be asked the same; that is not supported.)

    `exclude_bos` leaves out the first key of the example, on which heads rest, and `exclude_current` the query itself
    as key: these cells are then in no pair and in no total. `weights` are not changed. `rows`: `text` [token], the
    spelling, by which copies are told. BadInput where it does not fit the frame.
    """
    check_map(weights, frame, n_axes=3)
    n = len(frame.queries)
    counted = np.ones((n, n), bool)
    counted[frame.queries.special] = False
    if exclude_bos:
        counted[:, :1] = False
    if exclude_current:
        np.fill_diagonal(counted, False)
    if frame.causal:
        counted = np.tril(counted)
    total = np.zeros(len(weights))
    for heads, queries, block in blocks(weights):
        total[heads] += np.vecdot(block, counted[queries].astype(block.dtype)).sum(axis=-1, dtype=np.float64)
    seen = np.arange(1, n + 1) if frame.causal else np.full(n, n)
    names, cells = zip(*_patterns(frame, column(rows, "text", n)), strict=True)
    pairs = [np.nonzero(own & counted) for own in cells]
    # What is not defined is NaN; what only has no pairs is 0.
    known = np.where([name != "induction" or frame.causal for name in names], 1, np.nan)
    on_pairs = [weights[:, query, key].sum(axis=1, dtype=np.float64) for query, key in pairs]
    return {
        "pattern": np.array(names, object),
        "n_queries": np.full(len(names), n - np.count_nonzero(frame.queries.special), np.int32),
        "n_pairs": np.array([len(query) for query, _ in pairs], np.int32),
        "uniform": known * np.array([(1 / seen[query]).sum() for query, _ in pairs]),
        "uniform_total": known * (counted.sum(axis=1) / seen).sum(),
        "weight": known * np.stack(on_pairs, axis=1),
        "total": known * total[:, None],
    }


def _patterns(frame: Frame, text: NDArray[np.object_]) -> Iterator[tuple[str, BoolArray]]:
    """The pairs of each pattern [query, key]."""
    of_text = ~frame.queries.special
    both = of_text[:, None] & of_text
    first = first_copies(text)
    duplicate = np.tril((first[:, None] == first) & both, -1)
    yield "previous", both & np.eye(len(text), k=-1, dtype=bool)
    if not frame.causal:
        yield "next", both & np.eye(len(text), k=1, dtype=bool)
    yield "duplicate", duplicate
    if not frame.causal:
        yield "duplicate_after", duplicate.T
    after = np.zeros_like(duplicate)
    if frame.causal:
        after[:, 1:] = duplicate[:, :-1]
    yield "induction", np.tril(after & both, -1)
