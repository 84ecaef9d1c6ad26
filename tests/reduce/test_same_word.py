"""This file tests the attention between copies of one word in the two parts of a pair."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.same_word import same_word_facts

SUMS = ("a_to_b_sum", "b_to_a_sum", "a_to_b_control_sum", "b_to_a_control_sum")


def pair(first, second, words=None):
    """The columns of the words of two parts; `words` gives their numbers, if not those in turn."""
    forms = [*first.split(), *second.split()]
    return {
        "word": np.arange(len(forms)) if words is None else np.array(words),
        "form": np.array(forms, object),
        "part": np.array([0] * len(first.split()) + [1] * len(second.split())),
    }


@pytest.fixture(scope="module")
def four_words(axis_of):
    """Words 0 1 | 2 3 in tokens [CLS] 0 1 [SEP] 2 3 [SEP], with weights that tell every cell apart."""
    axis = axis_of("C 0 1 S 2 3 S")
    return np.arange(49, dtype=np.float64).reshape(1, 7, 7) / 100, Frame(axis, axis)


def test_one_copy_and_its_only_control(four_words):
    # Word 0 is word 3. From token 1 to tokens 5 and 4; from token 5 to tokens 1 and 2.
    facts = same_word_facts(*four_words, pair("the cat", "a the"))
    assert (facts["n_a"].tolist(), facts["n_b"].tolist()) == ([1], [1])
    found = [facts[name].item() for name in SUMS]
    assert found == pytest.approx([0.12, 0.36, 0.11, 0.37], rel=1e-6)


def test_a_word_with_more_copies_than_other_words_counts_in_neither_sum(four_words):
    # Word 0 finds two copies and no other word; words 2 and 3 find one copy and one other.
    facts = same_word_facts(*four_words, pair("the cat", "the the"))
    assert (facts["n_a"].tolist(), facts["n_b"].tolist()) == ([0], [2])
    found = [facts[name].item() for name in SUMS]
    assert found == pytest.approx([0, 0.29 + 0.36, 0, 0.30 + 0.37], rel=1e-6)


def test_copies_are_summed_by_definition_over_words_of_several_tokens(pieced, word_weight):
    # Words 0 1 2 | 3 4 5 6; word 5 has no tokens, so word 1 has no copy and word 0 only word 4.
    rows = pair("dog ran dog", "the dog ran cat")
    facts = same_word_facts(pieced.weights, pieced.frame, rows)
    assert facts["n_a"].tolist() == [2] * 5
    assert facts["n_b"].tolist() == [0] * 5  # word 4 has the copies 0 and 2, but only word 1 beside them
    for head, weights in enumerate(pieced.weights):
        expected = sum(word_weight(weights, pieced.frame.keys.word, word, 4) for word in (0, 2))
        assert facts["a_to_b_sum"][head] == pytest.approx(expected, rel=1e-6)
    possible = {
        round(sum(word_weight(pieced.weights[0], pieced.frame.keys.word, *cell) for cell in ((0, a), (2, b))), 5)
        for a in (3, 6)
        for b in (3, 6)
    }
    assert round(float(facts["a_to_b_control_sum"][0]), 5) in possible


def test_the_control_draws_without_copies_and_differs_between_seeds(random_map, axis_of):
    axis = axis_of(" ".join(map(str, range(20))))
    weights, frame = random_map(1, 20, 20), Frame(axis, axis)
    rows = pair("a b c d e f g h i j", "a b c d e f g h i k")
    facts = [same_word_facts(weights, frame, rows, seed=seed) for seed in range(8)]
    assert len({facts_of["a_to_b_control_sum"].item() for facts_of in facts}) == 8
    assert len({facts_of["a_to_b_sum"].item() for facts_of in facts}) == 1
    # Weight on copies alone: no control may find any.
    only_copies = np.zeros((1, 20, 20))
    only_copies[0, np.arange(20), (np.arange(20) + 10) % 20] = 1
    facts = same_word_facts(only_copies, frame, rows)
    assert [facts[name].item() for name in ("n_a", *SUMS)] == [9, 9, 9, 0, 0]


def test_the_draw_does_not_depend_on_the_order_of_rows_or_on_the_map(random_map, axis_of):
    axis = axis_of(" ".join(map(str, range(12))))
    frame, rows = Frame(axis, axis), pair("a b c d e f", "f e d c b a")
    shuffled = {name: values[::-1] for name, values in rows.items()}
    weights = random_map(3, 12, 12)
    there, again = (same_word_facts(weights, frame, order) for order in (rows, shuffled))
    for name in SUMS:
        np.testing.assert_allclose(there[name], again[name], rtol=1e-6)
    # A head alone draws the same words as among others.
    alone = same_word_facts(weights[1:2], frame, rows)
    assert alone["a_to_b_control_sum"][0] == there["a_to_b_control_sum"][1]


def test_words_of_unknown_form_are_no_copies_of_one_another(four_words):
    rows = pair("the cat", "a the")
    rows["form"] = np.array(["the", None, None, "the"], object)
    assert same_word_facts(*four_words, rows)["n_a"].tolist() == [0]  # nothing is left to draw from


def test_in_a_causal_map_part_a_does_not_see_part_b(random_map, axis_of):
    axis = axis_of("0 1 2 3")
    facts = same_word_facts(random_map(2, 4, 4, causal=True), Frame(axis, axis, True), pair("a b", "b a"))
    assert (facts["a_to_b_sum"] == 0).all()
    assert (facts["b_to_a_sum"] > 0).all()


@pytest.mark.parametrize("rows", [pair("the cat the cat", ""), pair("", ""), pair("the cat", "a dog")])
def test_without_copies_all_is_zero(rows, four_words):
    facts = same_word_facts(*four_words, rows)
    assert [facts[name].tolist() for name in ("n_a", "n_b", *SUMS)] == [[0]] * 6


def test_a_cross_map_has_no_sums(crossed):
    facts = same_word_facts(crossed.weights, crossed.frame, pair("a b", "b a"))
    assert facts["n_a"].tolist() == facts["n_b"].tolist() == [0, 0]
    assert all(facts[name].shape == (2,) and np.isnan(facts[name]).all() for name in SUMS)


def test_what_does_not_fit_is_refused(four_words):
    with pytest.raises(BadInput, match="seed = -1"):
        same_word_facts(*four_words, pair("a", "a"), seed=-1)
    with pytest.raises(BadInput, match=r"column word .* 4; expected 0 to 4, exclusive"):
        same_word_facts(*four_words, pair("a", "a", words=[0, 4]))
    with pytest.raises(BadInput, match="expected a column form"):
        same_word_facts(*four_words, {"word": np.array([0]), "part": np.array([0])})
