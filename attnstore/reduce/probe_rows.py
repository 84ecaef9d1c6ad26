"""This file gathers what a probe for governors learns from: the weights between all words of a sentence."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import check_map
from attnstore.reduce.columns import Columns, indices
from attnstore.reduce.pieces import Index, pieces_of
from attnstore.reduce.word_cells import word_maps, words_with_tokens
from attnstore.reduce.words import PieceMode, check_pieces

ROOT = -1
"""The candidate that stands for "no governor"."""


def pair_rows(
    weights: FloatArray, frame: Frame, rows: Columns, *, pieces: PieceMode = "mean"
) -> dict[str, NDArray[np.generic]]:
    """One row for every word of a sentence and every candidate for its governor (Clark et al. 2019, section 5).

    `sentence`, `dependent`, `candidate` int32 [row], `label` bool [row]: the candidate is the governor. Rows go by
    sentence, then dependent; the candidates are -1 for the root and then all other words of the sentence.
    `forward` and `backward` float32 [head, row], 0-1: the weight from candidate to dependent, and from dependent to
    candidate, in the word map; for the root those from dependent to [CLS] and from dependent to [SEP] (to all of
    them together; NaN where the text has none). The probe's score is a weighted sum of both over heads.

    Words without tokens have no rows, so that a word of which the governor has none has no true label.
    In a cross map the weights are NaN. `rows`: `word`, `governor` (-1 for a root), `sentence` [row].
    BadInput where they do not fit the frame.
    """
    check_map(weights, frame, n_axes=3)
    check_pieces(pieces)
    end = frame.queries.n_words if frame.is_self else None
    word = indices(rows, "word", end)
    governor = indices(rows, "governor", end, lowest=ROOT, length=len(word))
    sentence = indices(rows, "sentence", None, length=len(word))
    if frame.is_self:
        present = words_with_tokens(frame.queries)[word]
        word, governor, sentence = word[present], governor[present], sentence[present]
    place, candidate = _candidates(word, sentence)
    dependent = word[place]
    forward, backward = np.full((2, weights.shape[0], len(place)), np.nan, np.float32)
    if frame.is_self:
        _fill(forward, backward, weights, frame, dependent, candidate, pieces)
    return {
        "sentence": sentence[place].astype(np.int32),
        "dependent": dependent.astype(np.int32),
        "candidate": candidate.astype(np.int32),
        "label": governor[place] == candidate,
        "forward": forward,
        "backward": backward,
    }


def _candidates(word: Index, sentence: Index) -> tuple[Index, Index]:
    """The place of the dependent among `word`, and the candidate, of every row."""
    places, candidates = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    for number in np.unique(sentence):
        members = np.flatnonzero(sentence == number)
        members = members[np.argsort(word[members])]
        own = np.append(ROOT, word[members])
        other = own != word[members][:, None]  # [dependent, candidate]
        places.append(np.repeat(members, other.sum(axis=1)))
        candidates.append(np.broadcast_to(own, other.shape)[other])
    return np.concatenate(places), np.concatenate(candidates)


def _fill(
    forward: FloatArray,
    backward: FloatArray,
    weights: FloatArray,
    frame: Frame,
    dependent: Index,
    candidate: Index,
    pieces: PieceMode,
) -> None:
    units = pieces_of(frame.queries, specials=True)
    unit_of = np.zeros(frame.queries.n_words, np.intp)
    unit_of[units.word[units.word >= 0]] = np.flatnonzero(units.word >= 0)
    cls, sep = (np.flatnonzero(chosen[units.start] & (units.word < 0)) for chosen in (frame.keys.cls, frame.keys.sep))
    between, root = np.flatnonzero(candidate != ROOT), np.flatnonzero(candidate == ROOT)
    head, leaf, top = unit_of[candidate[between]], unit_of[dependent[between]], unit_of[dependent[root]]
    for heads, words in word_maps(weights, frame, pieces=pieces, specials=True):
        forward[heads, between], backward[heads, between] = words[:, head, leaf], words[:, leaf, head]
        for into, special in ((forward, cls), (backward, sep)):
            if special.size:
                into[heads, root] = words[:, :, special].sum(axis=-1)[:, top]
