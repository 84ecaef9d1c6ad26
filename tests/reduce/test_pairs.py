"""This file tests the attention between pairs of words, and how far attention follows them."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.pairs import alignment_facts, pair_facts

COUNTS = ("edges", "aligned_edges", "n_property", "n_pairs")


def pairs(*both):
    source, target = np.array(both, np.int32).reshape(-1, 2).T
    return {"source_word": source, "target_word": target}


def test_pairs_of_the_worked_example(syntax_map):
    # Words 0 1 2: rows (.1 .1 .25) (.3 .35 .2) (.6 .2 .1).
    facts = pair_facts(syntax_map.weights, syntax_map.frame, pairs((0, 2), (1, 0), (2, 2)))
    assert facts["source_word"].tolist() == [0, 1, 2]
    assert facts["target_word"].tolist() == [2, 0, 2]
    np.testing.assert_allclose(facts["forward"], [[0.25, 0.3, 0.1]], rtol=1e-6)
    np.testing.assert_allclose(facts["backward"], [[0.6, 0.1, 0.1]], rtol=1e-6)


def test_pairs_of_words_of_several_tokens_are_merged_by_definition(pieced, word_weight):
    chosen = [(0, 2), (2, 0), (4, 3), (6, 4)]
    facts = pair_facts(pieced.weights, pieced.frame, pairs(*chosen))
    word = pieced.frame.keys.word
    for head, weights in enumerate(pieced.weights):
        forward = [word_weight(weights, word, source, target) for source, target in chosen]
        backward = [word_weight(weights, word, target, source) for source, target in chosen]
        np.testing.assert_allclose(facts["forward"][head], forward, rtol=1e-6)
        np.testing.assert_allclose(facts["backward"][head], backward, rtol=1e-6)


def test_the_first_piece_may_stand_for_the_word(pieced):
    facts = pair_facts(pieced.weights, pieced.frame, pairs((0, 4)), pieces="first")
    np.testing.assert_allclose(facts["forward"][:, 0], pieced.weights[:, 1, [9, 10]].sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(facts["backward"][:, 0], pieced.weights[:, 9, [1, 2]].sum(axis=1), rtol=1e-6)


def test_a_pair_with_a_word_without_tokens_has_no_weight(pieced):
    facts = pair_facts(pieced.weights, pieced.frame, pairs((5, 0), (0, 5), (0, 1)))
    for name in ("forward", "backward"):
        assert np.isnan(facts[name]).tolist() == [[True, True, False]] * 5


def test_no_pairs_give_no_rows(axis_of):
    axis = axis_of("C S", n_words=0)
    facts = pair_facts(np.full((3, 2, 2), 0.5), Frame(axis, axis), pairs())
    assert facts["forward"].shape == facts["backward"].shape == (3, 0)


def test_alignment_of_the_worked_example(syntax_map):
    # Between different words: 0 to 1 .1, 0 to 2 .25, 1 to 0 .3, 1 to 2 .2, 2 to 0 .6, 2 to 1 .2: together 1.65.
    rows = pairs((0, 2), (2, 0), (1, 2))
    facts = alignment_facts(syntax_map.weights, syntax_map.frame, rows, above=0.2499)
    assert facts["mass"] == pytest.approx([0.25 + 0.6 + 0.2])
    assert facts["total"] == pytest.approx([1.65])
    # Over .2499: .25, .3 and .6; of these, .3 goes from 1 to 0, which is no pair.
    assert [facts[name].tolist() for name in COUNTS] == [[3], [2], [3], [6]]
    assert alignment_facts(syntax_map.weights, syntax_map.frame, rows, above=0.6)["edges"].tolist() == [0]


def test_a_pair_that_is_given_twice_or_with_itself_counts_once_or_not(syntax_map):
    once = alignment_facts(syntax_map.weights, syntax_map.frame, pairs((0, 2)))
    for more in (pairs((0, 2), (0, 2)), pairs((0, 2), (1, 1))):
        facts = alignment_facts(syntax_map.weights, syntax_map.frame, more)
        assert all((facts[name] == once[name]).all() for name in once)


@pytest.mark.parametrize("pieces", ["mean", "first"])
def test_alignment_is_the_sum_over_pairs_of_words_with_tokens(pieced, word_weight, pieces):
    chosen = {(0, 2), (2, 0), (4, 3), (5, 0), (6, 6)}
    facts = alignment_facts(pieced.weights, pieced.frame, pairs(*chosen), above=0.1, pieces=pieces)
    word = pieced.frame.keys.word
    if pieces == "first":
        # A word's row is that of its first token.
        starts = {own: list(word).index(own) for own in range(7) if own in word}
        word_weight = lambda weights, word, q, k: weights[starts[q], word == k].sum()  # noqa: E731
    present = [0, 1, 2, 3, 4, 6]
    for head, weights in enumerate(pieced.weights):
        cells = {(q, k): word_weight(weights, word, q, k) for q in present for k in present if q != k}
        aligned = {pair: weight for pair, weight in cells.items() if pair in chosen}
        assert facts["mass"][head] == pytest.approx(sum(aligned.values()))
        assert facts["total"][head] == pytest.approx(sum(cells.values()))
        expected = [
            sum(weight > 0.1 for weight in cells.values()),
            sum(weight > 0.1 for weight in aligned.values()),
            3,
            30,
        ]
        assert [facts[name][head] for name in COUNTS] == expected


def test_an_example_without_words_has_nothing_to_follow(axis_of):
    axis = axis_of("C S", n_words=0)
    facts = alignment_facts(np.full((2, 2, 2), 0.5), Frame(axis, axis), pairs())
    assert {tuple(values) for values in facts.values()} == {(0.0, 0.0)}


def test_in_a_cross_map_nothing_is_known(crossed):
    facts = pair_facts(crossed.weights, crossed.frame, pairs((0, 1)))
    assert np.isnan(facts["forward"]).all()
    assert np.isnan(facts["backward"]).all()
    assert {tuple(values) for values in alignment_facts(crossed.weights, crossed.frame, pairs((0, 1))).values()} == {
        (0.0, 0.0)
    }


@pytest.mark.parametrize("rows", [pairs((0, 3)), pairs((-1, 0)), {"source_word": np.array([0])}])
def test_words_that_are_not_there_are_refused(syntax_map, rows):
    for reduce in (pair_facts, alignment_facts):
        with pytest.raises(BadInput):
            reduce(syntax_map.weights, syntax_map.frame, rows)


@pytest.mark.parametrize("above", [-0.1, 1.0, float("nan")])
def test_a_threshold_that_is_no_weight_is_refused(syntax_map, above):
    with pytest.raises(BadInput, match="above"):
        alignment_facts(syntax_map.weights, syntax_map.frame, pairs(), above=above)
