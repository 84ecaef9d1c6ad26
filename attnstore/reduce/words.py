"""This file turns maps between tokens into maps between words."""

from typing import Literal, get_args

import numpy as np

from attnstore.errors import BadInput
from attnstore.reduce.axes import Axis, FloatArray, Frame
from attnstore.reduce.blocks import check_map, work_dtype
from attnstore.reduce.pieces import Index, Pieces, pieces_of, tokens_of

PieceMode = Literal["mean", "first", "max"]
"""How the rows of a word's pieces become one row: their mean (Clark et al. 2019, section 4.1), the first piece's
(what their released script does), or the largest weight of each column, the row then divided by its sum."""

# Longer words than this are rare, and are left to reduceat.
_FEW_PIECES = 8


def word_map(weights: FloatArray, frame: Frame, *, pieces: PieceMode = "mean", specials: bool = False) -> FloatArray:
    """The map between words [..., word_q, word_k] of `weights` [..., query, key] (Clark et al. 2019, section 4.1).

    Columns of a word's pieces are added; its rows are combined as `pieces` says (the row of a one-piece word
    stays as it is). Tokens that belong to no word are left out without renormalising, and a word without tokens
    has a row and a column of zeros, so that the index is that of the example's words. With `specials` the axes
    are the units of `pieces_of(axis, specials=True)` instead, and rows keep their sums. Always a new array, of
    the type of `weights` but at least float32. BadInput for a shape that is not the frame's.
    """
    check_map(weights, frame)
    check_pieces(pieces)
    queries = pieces_of(frame.queries, specials=specials)
    keys = queries if frame.is_self else pieces_of(frame.keys, specials=specials)
    merged = merge_pieces(weights, queries, keys, frame.keys, pieces)
    sizes = (len(queries), len(keys)) if specials else (frame.queries.n_words, frame.keys.n_words)
    if merged.shape[-2:] == sizes:
        return merged.copy() if np.may_share_memory(merged, weights) else merged
    placed = np.zeros((*weights.shape[:-2], *sizes), merged.dtype)
    placed[..., queries.word[:, None], keys.word] = merged
    return placed


def check_pieces(pieces: str) -> None:
    """Raise BadInput unless `pieces` is one of PieceMode."""
    if pieces not in get_args(PieceMode):
        raise BadInput("merging pieces into words", f"pieces = {pieces!r}", ", ".join(map(repr, get_args(PieceMode))))


def merge_pieces(weights: FloatArray, queries: Pieces, keys: Pieces, key_axis: Axis, pieces: PieceMode) -> FloatArray:
    """The map [..., unit_q, unit_k] of `weights` [..., query, key]: see `word_map`.

    It may be a view of `weights`, where every unit is one token. Only the rows of `queries` are read.
    """
    dtype = work_dtype(weights)
    several = np.flatnonzero(queries.count > 1)
    if pieces == "first" or not several.size:
        return _sum_keys(_take(weights, queries.start, axis=-2).astype(dtype, copy=False), keys)
    # First pieces are gathered, and only words of several pieces are combined.
    rows = weights.take(queries.start, axis=-2).astype(dtype, copy=False)
    if pieces == "mean":
        split = queries[several]
        tokens, local = tokens_of(split)
        total = _combine(np.add, weights.take(tokens, axis=-2).astype(dtype, copy=False), local, axis=-2)
        rows[..., several, :] = total / split.count.astype(dtype)[:, None]
        return _sum_keys(rows, keys)
    merged = _sum_keys(rows, keys)
    merged[..., several, :] = _largest_rows(weights, queries[several], keys, key_axis)
    return merged


def _largest_rows(weights: FloatArray, split: Pieces, keys: Pieces, key_axis: Axis) -> FloatArray:
    tokens, local = tokens_of(split)
    # The sum that divides is over the whole row, so that a map with special tokens and one without agree.
    every = pieces_of(key_axis, specials=True)
    rows = _sum_keys(weights.take(tokens, axis=-2).astype(work_dtype(weights), copy=False), every)
    top = _combine(np.maximum, rows, local, axis=-2)
    total = top.sum(axis=-1, keepdims=True)
    divided: FloatArray = top / np.where(total > 0, total, 1)
    return divided[..., np.searchsorted(every.start, keys.start)]


def _sum_keys(weights: FloatArray, keys: Pieces) -> FloatArray:
    several = np.flatnonzero(keys.count > 1)
    if not several.size:
        return _take(weights, keys.start, axis=-1)
    summed = weights.take(keys.start, axis=-1)
    summed[..., several] = _combine(np.add, weights, keys[several], axis=-1)
    return summed


def _take(weights: FloatArray, tokens: Index, *, axis: Literal[-1, -2]) -> FloatArray:
    """Rows (axis -2) or columns (axis -1) of `weights`; a view where all of `tokens` are neighbours."""
    if not len(tokens) or (np.diff(tokens) != 1).any():
        return weights.take(tokens, axis=axis)
    span = slice(int(tokens[0]), int(tokens[-1]) + 1)
    return weights[..., span] if axis == -1 else weights[..., span, :]


def _combine(ufunc: np.ufunc, weights: FloatArray, units: Pieces, *, axis: Literal[-1, -2]) -> FloatArray:
    """`ufunc` over the tokens of each of `units`, all of two tokens or more, along `axis`."""
    # Whole slices at a time: np.add.reduceat takes 5 ns per element of the result, eight times a gather's.
    longest = int(units.count.max())
    if longest > _FEW_PIECES:
        tokens, local = tokens_of(units)
        combined: FloatArray = ufunc.reduceat(weights.take(tokens, axis=axis), local.start, axis=axis)
        return combined
    combined = weights.take(units.start, axis=axis)
    ufunc(combined, weights.take(units.start + 1, axis=axis), out=combined)
    for piece in range(2, longest):
        more = np.flatnonzero(units.count > piece)
        place = (..., more) if axis == -1 else (..., more, slice(None))
        combined[place] = ufunc(combined[place], weights.take(units.start[more] + piece, axis=axis))
    return combined
