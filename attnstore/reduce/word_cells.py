"""This file reads single weights out of word maps, a few heads at a time."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import Axis, BoolArray, FloatArray, Frame
from attnstore.reduce.blocks import block_steps, check_map, spans
from attnstore.reduce.pieces import Index
from attnstore.reduce.words import PieceMode, check_pieces, word_map


def word_maps(
    weights: FloatArray, frame: Frame, *, pieces: PieceMode = "mean", specials: bool = False
) -> Iterator[tuple[slice, FloatArray]]:
    """Heads and their word map [head, word_q, word_k] (see `word_map`), so that never all maps are copied at once."""
    head_step, _ = block_steps(len(frame.queries), len(frame.keys))
    for heads in spans(weights.shape[0], head_step):
        yield heads, word_map(weights[heads], frame, pieces=pieces, specials=specials)


def word_cells(
    weights: FloatArray, frame: Frame, queries: Index, keys: Index, *, pieces: PieceMode = "mean"
) -> NDArray[np.float32]:
    """The weight from each of the words `queries` to the word beside it in `keys`, both [cell]: float32 [head, cell].

    Of the word map of `weights` [head, query, key], 0-1. NaN where one of the two has no tokens, and throughout
    in a cross map, of which only one axis has the example's words.
    """
    check_map(weights, frame, n_axes=3)
    check_pieces(pieces)
    cells = np.full((weights.shape[0], len(queries)), np.nan, np.float32)
    if not frame.is_self:
        return cells
    for heads, words in word_maps(weights, frame, pieces=pieces):
        cells[heads] = words[:, queries, keys]
    present = words_with_tokens(frame.queries)
    cells[:, ~(present[queries] & present[keys])] = np.nan
    return cells


def words_with_tokens(axis: Axis) -> BoolArray:
    """Which words [word] of `axis` have at least one token."""
    present = np.zeros(axis.n_words, bool)
    present[axis.word[axis.word >= 0]] = True
    return present
