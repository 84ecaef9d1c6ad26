"""This file finds, for every mention, the candidate antecedent that its head word attends to most."""

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import BoolArray, FloatArray, Frame, IntArray
from attnstore.reduce.blocks import block_steps, check_map, spans
from attnstore.reduce.columns import Columns, column, indices
from attnstore.reduce.pieces import Index, Pieces, pieces_of
from attnstore.reduce.rows import largest
from attnstore.reduce.words import PieceMode, check_pieces, merge_pieces

Candidates = Literal["preceding_mention_heads", "earlier_mention_heads", "mention_heads", "all_words"]
"""The words that a mention may choose: head words of mentions that end before it starts; of mentions that start
before it, so that one may contain it; of all mentions; or every word."""


def mention_facts(
    weights: FloatArray,
    frame: Frame,
    rows: Columns,
    *,
    candidates: Candidates = "preceding_mention_heads",
    pieces: PieceMode = "mean",
) -> dict[str, NDArray[np.generic]]:
    """`mention` int32 [row], and the word that each mention's head word chooses (Clark et al. 2019, section 4.3).

    `attends_to` int32 [head, row] is the candidate word that the row of the mention's head word weighs most in the
    word map, `attended_by` the candidate whose row weighs the head word most. The head word itself is never a
    candidate, nor are special tokens. The lowest word on a tie; -1 where there is no candidate or the largest
    weight is 0. `attends_to_weight` and `attended_by_weight` float32 [head, row], 0-1; 0 beside a -1.
    In a cross map all are -1, with weight 0.

    `rows`: `mention`, `start_word`, `end_word` (exclusive), `head_word` [row]. BadInput for a word that the frame
    does not have.
    """
    check_map(weights, frame, n_axes=3)
    check_pieces(pieces)
    if candidates not in get_args(Candidates):
        choices = ", ".join(map(repr, get_args(Candidates)))
        raise BadInput("choosing antecedents", f"candidates = {candidates!r}", choices)
    mention = column(rows, "mention").astype(np.int32)
    shape = (weights.shape[0], len(mention))
    to_word, by_word = np.full((2, *shape), -1, np.int32)
    to_weight, by_weight = np.zeros((2, *shape), np.float32)
    if frame.is_self:
        n_words = frame.queries.n_words
        start, head_word = (indices(rows, name, n_words, length=len(mention)) for name in ("start_word", "head_word"))
        end = indices(rows, "end_word", n_words + 1, length=len(mention))
        words = pieces_of(frame.queries)
        asked = np.flatnonzero(np.isin(head_word, words.word))
        allowed = _allowed(start, end, head_word, n_words, candidates)[asked]
        # Other rows need not be merged: mentions' head words are a quarter of a text.
        merged = words if candidates == "all_words" else words[np.flatnonzero(np.isin(words.word, head_word))]
        row = np.searchsorted(merged.word, head_word[asked])
        for heads, maps in _maps(weights, frame, merged, pieces):
            to_word[heads, asked], to_weight[heads, asked] = _choose(maps[:, row], allowed, merged)
            by_word[heads, asked], by_weight[heads, asked] = _choose(maps.swapaxes(1, 2)[:, row], allowed, merged)
    return {
        "mention": mention,
        "attends_to": to_word,
        "attends_to_weight": to_weight,
        "attended_by": by_word,
        "attended_by_weight": by_weight,
    }


def _allowed(start: Index, end: Index, head_word: Index, n_words: int, candidates: Candidates) -> BoolArray:
    """Which words each mention may choose [mention, word]."""
    if candidates == "all_words":
        allowed = np.ones((len(start), n_words), bool)
    else:
        pairs = {
            "preceding_mention_heads": end <= start[:, None],
            "earlier_mention_heads": start < start[:, None],
            "mention_heads": np.ones((len(start), len(start)), bool),
        }[candidates]
        allowed = np.zeros((len(start), n_words), bool)
        mention, other = np.nonzero(pairs)
        allowed[mention, head_word[other]] = True
    allowed[np.arange(len(start)), head_word] = False
    return allowed


def _maps(weights: FloatArray, frame: Frame, merged: Pieces, pieces: PieceMode) -> Iterator[tuple[slice, FloatArray]]:
    """Some heads, and their map between the words `merged` [head, word, word]."""
    if not len(merged):
        return
    step, _ = block_steps(int(merged.count.sum()), len(frame.keys))
    for heads in spans(weights.shape[0], step):
        yield heads, merge_pieces(weights[heads], merged, merged, frame.keys, pieces)


def _choose(weights: FloatArray, allowed: BoolArray, merged: Pieces) -> tuple[IntArray, FloatArray]:
    """The allowed word of the largest of `weights` [head, mention, merged word], -1 where that is 0, and the weight."""
    index, top = largest(weights * allowed[:, merged.word])
    return np.where(top > 0, merged.word[index], -1).astype(np.int32), top
