"""This file measures the attention between the two ends of links, such as a frame's elements and its target."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import check_map
from attnstore.reduce.columns import Columns, column, first_copies, indices
from attnstore.reduce.pieces import Index
from attnstore.reduce.word_cells import word_cells, words_with_tokens
from attnstore.reduce.words import PieceMode, check_pieces

Level = Literal["word", "token"]
"""Which map the weights are taken from: between words, or between tokens as it is."""

LinkPairs = Literal["all", "zip"]
"""Which pairs of units belong to a link: all, or the n-th of the source with the n-th of the target."""

_ENDS = (("source_start_word", 0), ("source_end_word", 1), ("target_start_word", 0), ("target_end_word", 1))


def link_facts(
    weights: FloatArray,
    frame: Frame,
    rows: Columns,
    *,
    level: Level = "word",
    pairs: LinkPairs = "all",
    pieces: PieceMode = "mean",
) -> dict[str, NDArray[np.generic]]:
    """`link` int32 [row], and the weights between its two spans of words, float32 [head, row], 0-1.

    `source_to_target` (query in the source, key in the target) and `target_to_source` are the largest weight over
    the pairs of the link, `source_to_target_mean` and `target_to_source_mean` their mean (Kovaleva et al. 2019,
    section 4.2). Pairs are all pairs of words in the word map (`level="word"`), or all pairs of tokens in the map as
    it is (`"token"`, where `pieces` plays no part). The diagonal counts where spans overlap. Words without tokens
    are passed over; NaN where a span has no tokens, and throughout in a cross map.

    `pairs="zip"`, for tokens only, repeats the paper's released code: the n-th token of the source goes with the
    n-th of the target, and each token stands for the first one of the example with the same text.

    `rows`: `link`, `source_start_word`, `source_end_word`, `target_start_word`, `target_end_word` [row], ends
    exclusive; for `"zip"` also `text` [token]. BadInput where they do not fit the frame, and for `"zip"` on words.
    """
    check_map(weights, frame, n_axes=3)
    check_pieces(pieces)
    _check(level, pairs)
    link = column(rows, "link").astype(np.int32)
    if not frame.is_self:
        return {"link": link} | _named(*np.full((4, weights.shape[0], len(link)), np.nan, np.float32))
    n_words = frame.queries.n_words
    spans = np.array([indices(rows, name, n_words + end, length=len(link)) for name, end in _ENDS])
    # The word that each unit is, or is part of; -1 for those that no span holds.
    word = frame.queries.word
    if level == "word":
        word = np.where(words_with_tokens(frame.queries), np.arange(n_words), -1)
    stands_for = np.arange(len(word))
    if pairs == "zip":
        stands_for = first_copies(column(rows, "text", len(word)))
    sources, targets, counts = _pairs(spans, word, pairs)
    queries, keys = stands_for[np.concatenate([sources, targets])], stands_for[np.concatenate([targets, sources])]
    if level == "word":
        cells = word_cells(weights, frame, queries, keys, pieces=pieces)
    else:
        cells = weights[:, queries, keys].astype(np.float32)
    forward, backward = (_summaries(part, counts) for part in np.split(cells, 2, axis=1))
    return {"link": link} | _named(*forward, *backward)


def _pairs(spans: Index, word: NDArray[np.integer], pairs: LinkPairs) -> tuple[Index, Index, Index]:
    """Source and target unit of every pair [pair], link after link, and how many pairs each link has [link]."""
    sources, targets = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for start, end, target_start, target_end in spans.T:
        source = np.flatnonzero((word >= start) & (word < end))
        target = np.flatnonzero((word >= target_start) & (word < target_end))
        if pairs == "zip":
            both = min(len(source), len(target))
            sources.append(source[:both])
            targets.append(target[:both])
        else:
            sources.append(np.repeat(source, len(target)))
            targets.append(np.tile(target, len(source)))
    counts = np.array([len(source) for source in sources[1:]], np.intp)
    return np.concatenate(sources), np.concatenate(targets), counts


def _summaries(cells: NDArray[np.float32], counts: Index) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Largest and mean [head, link] of `cells` [head, pair], NaN for a link without pairs."""
    largest, mean = np.full((2, len(cells), len(counts)), np.nan, np.float32)
    some = np.flatnonzero(counts)
    if some.size:
        starts = (np.cumsum(counts) - counts)[some]
        largest[:, some] = np.maximum.reduceat(cells, starts, axis=1)
        mean[:, some] = np.add.reduceat(cells, starts, axis=1, dtype=np.float64) / counts[some]
    return largest, mean


def _named(
    source_to_target: NDArray[np.float32],
    source_to_target_mean: NDArray[np.float32],
    target_to_source: NDArray[np.float32],
    target_to_source_mean: NDArray[np.float32],
) -> dict[str, NDArray[np.generic]]:
    return {
        "source_to_target": source_to_target,
        "target_to_source": target_to_source,
        "source_to_target_mean": source_to_target_mean,
        "target_to_source_mean": target_to_source_mean,
    }


def _check(level: str, pairs: str) -> None:
    for name, value, choices in (("level", level, get_args(Level)), ("pairs", pairs, get_args(LinkPairs))):
        if value not in choices:
            raise BadInput("measuring links", f"{name} = {value!r}", " or ".join(map(repr, choices)))
    if level == "word" and pairs == "zip":
        raise BadInput("measuring links", "pairs = 'zip' with level = 'word'", "level = 'token'")
