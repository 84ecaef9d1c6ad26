"""This file compares the heaviest trees over each head's word map with the annotated syntax."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import check_map
from attnstore.reduce.columns import Columns, indices
from attnstore.reduce.pieces import Index
from attnstore.reduce.spanning_trees import maximum_arborescence, maximum_spanning_tree
from attnstore.reduce.word_cells import word_maps, words_with_tokens
from attnstore.reduce.words import PieceMode, check_pieces


def tree_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, pieces: PieceMode = "mean"
) -> dict[str, NDArray[np.float64]]:
    """How many arcs the heaviest trees of each head get right, each float64 [head], summed over sentences.

    `n`: words that have a governor. `correct`: those whose governor is the annotated one in the heaviest directed
    tree from the annotated root, where an arc weighs what the dependent gives its governor in the word map
    (Raganato and Tiedemann 2018, section 4.2); correct / n is UAS without the root. `undirected_correct`: those that
    are tied to their governor in the heaviest tree without directions, where two words are tied by the larger of
    their two weights (Htut et al. 2019); UUAS.

    Words without tokens are in no tree, and a word of which the governor has none does not count. A sentence is
    left out unless exactly one of its words that have tokens is a root. In a cross map `n` is 0, the others NaN.

    `rows`: `word`, `governor` (-1 for a root), `sentence` [row]. BadInput where they do not fit the frame.
    """
    check_map(weights, frame, n_axes=3)
    check_pieces(pieces)
    n, correct, undirected = np.zeros((3, weights.shape[0]))
    facts = {"n": n, "correct": correct, "undirected_correct": undirected}
    if not frame.is_self:
        correct[:] = undirected[:] = np.nan
        return facts
    sentences = _sentences(frame, rows)
    n[:] = sum(np.count_nonzero(governor >= 0) for _, governor, _ in sentences)
    if not n.any():
        return facts
    for heads, maps in word_maps(weights, frame, pieces=pieces):
        for word, governor, root in sentences:
            counted = np.flatnonzero(governor >= 0)
            for head, between in enumerate(maps[:, word[:, None], word].astype(np.float64), start=heads.start):
                found = maximum_arborescence(between, root)
                correct[head] += np.count_nonzero(found[counted] == governor[counted])
                tied = maximum_spanning_tree(np.maximum(between, between.T))
                edge = (tied[counted] == governor[counted]) | (tied[governor[counted]] == counted)
                undirected[head] += np.count_nonzero(edge)
    return facts


def _sentences(frame: Frame, rows: Columns) -> list[tuple[Index, Index, int]]:
    """Of every sentence with one root: its words, the place of each one's governor among them, that of the root.

    The place is -1 for the root and for a word whose governor has no tokens.
    """
    n_words = frame.queries.n_words
    word = indices(rows, "word", n_words)
    governor = indices(rows, "governor", n_words, lowest=-1, length=len(word))
    sentence = indices(rows, "sentence", None, length=len(word))
    present = words_with_tokens(frame.queries)[word]
    found = []
    for number in np.unique(sentence):
        members = np.flatnonzero((sentence == number) & present)
        members = members[np.argsort(word[members])]
        roots = np.flatnonzero(governor[members] == -1)
        if len(roots) == 1:
            place = np.full(n_words + 1, -1)  # the last entry answers for governor -1
            place[word[members]] = np.arange(len(members))
            found.append((word[members], place[governor[members]], int(roots[0])))
    return found
