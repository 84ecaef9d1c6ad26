"""This file finds, for every word, the other word it attends to most and the other word that attends to it most."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.format.compiled import is_compiling
from attnstore.reduce.axes import FloatArray, Frame, IntArray
from attnstore.reduce.blocks import block_steps, check_map, gather, spans, work_dtype
from attnstore.reduce.compiled_words import fill_words
from attnstore.reduce.pieces import Pieces, pieces_of
from attnstore.reduce.rows import largest
from attnstore.reduce.words import PieceMode, check_pieces, merge_pieces

WordFacts = dict[str, NDArray[np.generic]]


def word_facts(weights: FloatArray, frame: Frame, *, pieces: PieceMode = "mean", compiled: bool = False) -> WordFacts:
    """The columns of WORD_FACTS, each [head, word], of `weights` [head, query, key] (Clark et al. 2019, section 4.2).

    From the word map (see `word_map`) without special tokens and without its diagonal, not renormalised:
    `attends_to` int32, the key word of the largest weight in the word's row (their dependent to head);
    `attended_by` int32, the query word of the largest weight in the word's column (their head to dependent).
    The lowest word on a tie; -1 where the largest weight is 0, the word has no tokens or no other word has.
    `attends_to_weight` and `attended_by_weight` float32, 0-1.

    In a cross map, `word` runs over query words: `attends_to` is a key word, nothing is left out as diagonal,
    and `attended_by` is -1 throughout, since a key word has no row in this table.

    `compiled` takes float32 weights through numba where it is installed and `pieces` is "mean": the same to the bit
    but for words of more than eight pieces.
    """
    check_map(weights, frame, n_axes=3)
    check_pieces(pieces)
    queries = pieces_of(frame.queries)
    keys = queries if frame.is_self else pieces_of(frame.keys)
    shape, dtype = (weights.shape[0], len(queries)), work_dtype(weights)
    to_unit, to_weight = np.full(shape, -1, np.int32), np.zeros(shape, dtype)
    by_unit, by_weight = np.full(shape, -1, np.int32), np.zeros(shape, dtype)
    if compiled and dtype == weights.dtype == np.float32 and pieces == "mean" and is_compiling():
        fill_words(weights, queries, keys, frame.is_self, (to_unit, to_weight), (by_unit, by_weight))
    else:
        _fill_words(weights, frame, queries, keys, pieces, (to_unit, to_weight), (by_unit, by_weight))
    n_words = frame.queries.n_words
    return {
        "attends_to": _place(_named(to_unit, keys), queries, n_words, -1),
        "attends_to_weight": _place(to_weight.astype(np.float32, copy=False), queries, n_words, 0),
        "attended_by": _place(_named(by_unit, queries), queries, n_words, -1),
        "attended_by_weight": _place(by_weight.astype(np.float32, copy=False), queries, n_words, 0),
    }


def _fill_words(
    weights: FloatArray,
    frame: Frame,
    queries: Pieces,
    keys: Pieces,
    pieces: PieceMode,
    to: tuple[IntArray, FloatArray],
    by: tuple[IntArray, FloatArray],
) -> None:
    """What `fill_words` does, for every way to combine pieces: the reference."""
    (to_unit, to_weight), (by_unit, by_weight) = to, by
    for heads, units, block in _blocks(weights, frame, queries, keys, pieces):
        index, top = largest(block)
        to_weight[heads, units] = top
        np.copyto(to_unit[heads, units], index, where=top > 0, casting="same_kind")
        if frame.is_self:
            index = block.argmax(axis=-2)
            top = gather(block.swapaxes(-1, -2), index)
            # Rows come in word order: on a tie the earlier block, and so the lower word, stays.
            better = top > by_weight[heads]
            np.copyto(by_weight[heads], top, where=better)
            np.copyto(by_unit[heads], index + units.start, where=better, casting="same_kind")


def _named(units: IntArray, pieces: Pieces) -> IntArray:
    """Words in the place of units; -1 stays."""
    words: IntArray = np.append(pieces.word, -1).astype(np.int32)[units]
    return words


def _blocks(
    weights: FloatArray, frame: Frame, queries: Pieces, keys: Pieces, pieces: PieceMode
) -> Iterator[tuple[slice, slice, FloatArray]]:
    """Blocks of the word map: their heads, their query units, and the weights, 0 on the diagonal."""
    if not len(queries) or not len(keys):
        return
    n_heads, n_queries, n_keys = weights.shape
    head_step, token_step = block_steps(n_queries, n_keys)
    unit_step = max(1, token_step * len(queries) // n_queries)  # as many words as that many tokens hold
    for units in spans(len(queries), unit_step):
        for heads in spans(n_heads, head_step):
            block = merge_pieces(weights[heads], queries[units], keys, frame.keys, pieces)
            if frame.is_self:
                if np.may_share_memory(block, weights):
                    block = block.copy()
                own = np.arange(units.start, units.stop)
                block[:, own - units.start, own] = 0
            yield heads, units, block


def _place(values: NDArray[np.generic], units: Pieces, n_words: int, missing: int) -> NDArray[np.generic]:
    """`values` [head, unit] as [head, word], with `missing` for words that have no tokens."""
    if len(units) == n_words:
        return values
    placed = np.full((values.shape[0], n_words), missing, values.dtype)
    placed[:, units.word] = values
    return placed
