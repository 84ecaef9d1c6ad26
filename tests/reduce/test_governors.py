"""This file tests the attention between words and their governors."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.governors import governor_facts


def governed(*pairs):
    word, governor = np.array(pairs, np.int32).reshape(-1, 2).T
    return {"word": word, "governor": governor}


def test_the_worked_example(syntax_map):
    # Words 0 1 2: rows (.1 .1 .25) (.3 .35 .2) (.6 .2 .1).
    facts = governor_facts(syntax_map.weights, syntax_map.frame, governed((0, 2), (1, 0)))
    assert facts["word"].tolist() == [0, 1]
    np.testing.assert_allclose(facts["to_governor"], [[0.25, 0.3]], rtol=1e-6)
    np.testing.assert_allclose(facts["from_governor"], [[0.6, 0.1]], rtol=1e-6)


def test_words_of_several_tokens_are_merged_by_definition(pieced, word_weight):
    pairs = [(0, 2), (1, 0), (4, 3), (6, 4), (3, 4)]
    facts = governor_facts(pieced.weights, pieced.frame, governed(*pairs))
    word = pieced.frame.keys.word
    for head, weights in enumerate(pieced.weights):
        to = [word_weight(weights, word, dependent, governor) for dependent, governor in pairs]
        by = [word_weight(weights, word, governor, dependent) for dependent, governor in pairs]
        np.testing.assert_allclose(facts["to_governor"][head], to, rtol=1e-6)
        np.testing.assert_allclose(facts["from_governor"][head], by, rtol=1e-6)


def test_the_first_piece_may_stand_for_the_word(pieced):
    facts = governor_facts(pieced.weights, pieced.frame, governed((0, 4)), pieces="first")
    np.testing.assert_allclose(facts["to_governor"][:, 0], pieced.weights[:, 1, [9, 10]].sum(axis=1), rtol=1e-6)


def test_a_word_or_governor_without_tokens_has_no_weight(pieced):
    facts = governor_facts(pieced.weights, pieced.frame, governed((5, 0), (0, 5), (0, 1)))
    for name in ("to_governor", "from_governor"):
        assert np.isnan(facts[name]).tolist() == [[True, True, False]] * 5


def test_no_governed_words_give_no_rows(axis_of):
    axis = axis_of("C S", n_words=0)
    facts = governor_facts(np.full((3, 2, 2), 0.5), Frame(axis, axis), governed())
    assert facts["word"].shape == (0,)
    assert facts["to_governor"].shape == facts["from_governor"].shape == (3, 0)


def test_in_a_causal_map_a_governor_that_comes_later_is_not_seen(random_map, axis_of):
    axis = axis_of("0 1")
    facts = governor_facts(random_map(2, 2, 2, causal=True), Frame(axis, axis, True), governed((0, 1)))
    assert (facts["to_governor"] == 0).all()
    assert (facts["from_governor"] > 0).all()


def test_in_a_cross_map_nothing_is_known(crossed):
    facts = governor_facts(crossed.weights, crossed.frame, governed((0, 1), (9, 0)))
    assert facts["word"].tolist() == [0, 9]
    assert np.isnan(facts["to_governor"]).all()
    assert np.isnan(facts["from_governor"]).all()


def test_a_root_is_refused(map_x):
    with pytest.raises(BadInput, match=r"governor .* -1; expected 0 to 2, exclusive"):
        governor_facts(map_x.weights, map_x.frame, governed((0, -1)))
