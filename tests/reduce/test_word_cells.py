"""This file tests single weights of word maps."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.word_cells import word_cells, word_maps, words_with_tokens
from attnstore.reduce.words import word_map


def test_every_cell_of_the_word_map_is_found_by_its_definition(pieced, word_weight):
    words = [0, 1, 2, 3, 4, 6]
    queries, keys = (axis.ravel() for axis in np.meshgrid(words, words, indexing="ij"))
    cells = word_cells(pieced.weights, pieced.frame, queries, keys)
    assert cells.dtype == np.float32
    for head, weights in enumerate(pieced.weights):
        expected = [word_weight(weights, pieced.frame.keys.word, *pair) for pair in zip(queries, keys, strict=True)]
        np.testing.assert_allclose(cells[head], expected, rtol=1e-6)


def test_a_word_without_tokens_has_no_weight_in_either_role(pieced):
    cells = word_cells(pieced.weights, pieced.frame, np.array([5, 0, 5, 0]), np.array([0, 5, 5, 1]))
    assert np.isnan(cells).tolist() == [[True, True, True, False]] * 5
    assert words_with_tokens(pieced.frame.queries).tolist() == [True] * 5 + [False, True]


def test_a_cross_map_has_no_weights_between_words_of_one_text(crossed):
    cells = word_cells(crossed.weights, crossed.frame, np.array([0, 1]), np.array([1, 0]))
    assert cells.shape == (2, 2)
    assert np.isnan(cells).all()


@pytest.mark.parametrize("cells", [1, 400])
def test_a_few_heads_at_a_time_give_the_whole_word_map(cells, pieced, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS", cells)  # one head; two heads of 13 * 13
    parts = list(word_maps(pieced.weights, pieced.frame, pieces="max", specials=True))
    assert [heads.start for heads, _ in parts] == ([0, 1, 2, 3, 4] if cells == 1 else [0, 2, 4])
    whole = word_map(pieced.weights, pieced.frame, pieces="max", specials=True)
    np.testing.assert_array_equal(np.concatenate([words for _, words in parts]), whole)


def test_an_unknown_way_to_combine_pieces_is_refused_in_cross_maps_too(crossed):
    with pytest.raises(BadInput, match="pieces = 'last'"):
        word_cells(crossed.weights, crossed.frame, np.array([0]), np.array([0]), pieces="last")
