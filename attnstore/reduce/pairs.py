"""This file measures the attention between the words of given pairs, and how far attention follows such pairs."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import check_map
from attnstore.reduce.columns import Columns, indices
from attnstore.reduce.word_cells import word_cells, word_maps, words_with_tokens
from attnstore.reduce.words import PieceMode


def pair_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, pieces: PieceMode = "mean"
) -> dict[str, NDArray[np.generic]]:
    """`source_word`, `target_word` int32 [row] as given, and the weights between them, float32 [head, row], 0-1.

    `forward` is the weight in the word map from the source (query) to the target (key), `backward` that from the
    target to the source (Kovaleva et al. 2019, section 4.5). NaN where one of them has no tokens, and throughout in
    a cross map. `rows`: `source_word`, `target_word` [row]; BadInput for a word that the frame does not have.
    """
    n_words = frame.queries.n_words
    source = indices(rows, "source_word", n_words)
    target = indices(rows, "target_word", n_words, length=len(source))
    queries, keys = np.concatenate([source, target]), np.concatenate([target, source])
    forward, backward = np.split(word_cells(weights, frame, queries, keys, pieces=pieces), 2, axis=1)
    return {
        "source_word": source.astype(np.int32),
        "target_word": target.astype(np.int32),
        "forward": forward,
        "backward": backward,
    }


def alignment_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, above: float = 0.3, pieces: PieceMode = "mean"
) -> dict[str, NDArray[np.float64]]:
    """How far the attention of each head [head] follows pairs of words that have a property (Vig and Belinkov 2019).

    From the word map without special tokens and its diagonal, over pairs of different words that both have tokens:
    `mass` is the weight on pairs with the property and `total` that on all pairs; `edges` counts pairs with a weight
    over `above` and `aligned_edges` those of them with the property; `n_property` and `n_pairs` count pairs whatever
    their weight: the background rate. All 0 in a cross map.

    `rows`: `source_word`, `target_word` [row], the pairs with the property, query first; one given twice counts
    once. BadInput for a word that the frame does not have, and unless 0 <= `above` < 1.
    """
    check_map(weights, frame, n_axes=3)
    if not 0 <= above < 1:
        raise BadInput("measuring alignment", f"above = {above!r}", "0 <= above < 1")
    n_words, n_heads = frame.queries.n_words, weights.shape[0]
    names = ("mass", "total", "edges", "aligned_edges", "n_property", "n_pairs")
    found = {name: np.zeros(n_heads) for name in names}
    if not frame.is_self:
        return found
    has = np.zeros((n_words, n_words), bool)
    source = indices(rows, "source_word", n_words)
    has[source, indices(rows, "target_word", n_words, length=len(source))] = True
    present = words_with_tokens(frame.queries)
    valid = present[:, None] & present & ~np.eye(n_words, dtype=bool)
    has &= valid
    for heads, words in word_maps(weights, frame, pieces=pieces):
        chosen, all_pairs = words[:, has], words[:, valid]
        found["mass"][heads] = chosen.sum(axis=1, dtype=np.float64)
        found["total"][heads] = all_pairs.sum(axis=1, dtype=np.float64)
        found["edges"][heads] = np.count_nonzero(all_pairs > above, axis=1)
        found["aligned_edges"][heads] = np.count_nonzero(chosen > above, axis=1)
    found["n_property"][:], found["n_pairs"][:] = np.count_nonzero(has), np.count_nonzero(valid)
    return found
