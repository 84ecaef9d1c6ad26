"""This file measures the attention between copies of one word in the two parts of a pair."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.columns import Columns, column, first_copies, indices
from attnstore.reduce.pieces import Index
from attnstore.reduce.word_cells import word_cells, words_with_tokens
from attnstore.reduce.words import PieceMode


def same_word_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, pieces: PieceMode = "mean", seed: int = 0
) -> dict[str, NDArray[np.float64]]:
    """Weights between copies of a word in part A and part B, summed over words: each float64 [head].

    `a_to_b_sum`: over the `n_a` words of A that have copies in B, the weight of all their copies in the word's row
    of the word map. `a_to_b_control_sum`: the same over as many words of B that are no copies, drawn at random.
    `b_to_a_sum`, `b_to_a_control_sum` and `n_b`: the same from B to A (what Kovaleva et al. 2019 saw in section 4.4).
    A word counts in neither sum, nor in the number, where the other part has fewer other words than copies.
    Words that have no tokens, or None for a form, are passed over. With one part all are 0; in a cross map the
    sums are NaN and the numbers 0.

    The draw depends on `seed`, the words and their number alone. `rows`: `word`, `form`, `part` [row], in any order;
    equal forms are copies, so folding case and leaving out punctuation is up to the caller; parts are 0 and 1.
    BadInput where they do not fit the frame, and for a negative `seed`.
    """
    if seed < 0:
        raise BadInput("drawing words at random", f"seed = {seed}", "0 or more")
    draw = np.random.default_rng([seed, frame.queries.n_words])
    places = list(_places(frame, rows, draw)) if frame.is_self else []
    # A to B, its control, B to A, its control.
    nothing = np.zeros(0, np.intp)
    queries = np.concatenate([nothing, *(np.full(2 * len(copies), word) for _, word, copies, _ in places)])
    keys = np.concatenate([nothing, *(side for _, _, *both in places for side in both)])
    group = np.concatenate([nothing, *(np.repeat([2 * own, 2 * own + 1], len(copies)) for own, _, copies, _ in places)])
    cells = word_cells(weights, frame, queries, keys, pieces=pieces).astype(np.float64)
    sums = cells @ np.eye(4)[group] if frame.is_self else np.full((weights.shape[0], 4), np.nan)
    counted = [float(sum(own == part for own, *_ in places)) for part in (0, 1)]
    return {
        "n_a": np.full(len(sums), counted[0]),
        "n_b": np.full(len(sums), counted[1]),
        "a_to_b_sum": sums[:, 0],
        "b_to_a_sum": sums[:, 2],
        "a_to_b_control_sum": sums[:, 1],
        "b_to_a_control_sum": sums[:, 3],
    }


def _places(frame: Frame, rows: Columns, draw: np.random.Generator) -> Iterator[tuple[int, int, Index, Index]]:
    """For every word that counts: its part, the word, its copies in the other part, and as many other words."""
    word = indices(rows, "word", frame.queries.n_words)
    form = column(rows, "form", len(word))
    part = indices(rows, "part", 2, length=len(word))
    order = np.argsort(word)
    known = words_with_tokens(frame.queries)[word] & np.array([value is not None for value in form], bool)
    order = order[known[order]]
    word, form, part = word[order], first_copies(form)[order], part[order]
    for own in (0, 1):
        there = part != own
        for place in np.flatnonzero(~there):
            equal = form == form[place]
            copies, others = word[there & equal], word[there & ~equal]
            if 0 < len(copies) <= len(others):
                yield own, int(word[place]), copies, draw.choice(others, len(copies), replace=False)
