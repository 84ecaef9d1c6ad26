"""This file tests what a probe for governors learns from."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.probe_rows import pair_rows


def parsed(*words):
    """The columns of words from (word, governor, sentence)."""
    word, governor, sentence = np.array(words, np.int32).reshape(-1, 3).T
    return {"word": word, "governor": governor, "sentence": sentence}


def keys_of(facts):
    names = ("sentence", "dependent", "candidate")
    return list(zip(*(facts[name].tolist() for name in names), strict=True))


def test_the_worked_example(syntax_map):
    facts = pair_rows(syntax_map.weights, syntax_map.frame, parsed((0, 2, 0), (1, 0, 0), (2, -1, 0)))
    pairs = [(0, -1), (0, 1), (0, 2), (1, -1), (1, 0), (1, 2), (2, -1), (2, 0), (2, 1)]
    assert keys_of(facts) == [(0, *pair) for pair in pairs]
    assert [pair for pair, true in zip(pairs, facts["label"], strict=True) if true] == [(0, 2), (1, 0), (2, -1)]
    # Forward is the candidate's row at the dependent, backward the dependent's row at the candidate.
    forward = [0.5, 0.3, 0.6, 0.1, 0.1, 0.2, 0.05, 0.25, 0.2]
    backward = [0.05, 0.1, 0.25, 0.05, 0.3, 0.2, 0.05, 0.6, 0.2]
    np.testing.assert_allclose(facts["forward"], [forward], rtol=1e-6)
    np.testing.assert_allclose(facts["backward"], [backward], rtol=1e-6)


@pytest.mark.parametrize("cells", [1 << 18, 1])
def test_every_row_is_what_its_definition_says(cells, pieced, word_weight, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS", cells)
    rows = parsed((6, 3, 1), (0, 1, 0), (1, -1, 0), (2, 1, 0), (3, -1, 1), (4, 3, 1), (5, 4, 1))
    facts = pair_rows(pieced.weights, pieced.frame, rows)
    sentences = [(0, [0, 1, 2]), (1, [3, 4, 6])]  # word 5 has no tokens
    expected = [(s, d, c) for s, words in sentences for d in words for c in [-1, *words] if c != d]
    assert keys_of(facts) == expected
    governor = dict(zip(rows["word"].tolist(), rows["governor"].tolist(), strict=True))
    assert facts["label"].tolist() == [governor[dependent] == candidate for _, dependent, candidate in expected]
    word = pieced.frame.keys.word
    for head, weights in enumerate(pieced.weights):
        for row, (_, dependent, candidate) in enumerate(expected):
            pieces = weights[word == dependent]
            if candidate == -1:
                forward, backward = pieces[:, 0].mean(), (pieces[:, 7] + pieces[:, 12]).mean()
            else:
                forward = word_weight(weights, word, candidate, dependent)
                backward = word_weight(weights, word, dependent, candidate)
            assert facts["forward"][head, row] == pytest.approx(forward, rel=1e-5)
            assert facts["backward"][head, row] == pytest.approx(backward, rel=1e-5)


def test_a_word_alone_has_only_the_root_to_choose(map_x):
    facts = pair_rows(map_x.weights, map_x.frame, parsed((1, -1, 4)))
    assert keys_of(facts) == [(4, 1, -1)]
    assert facts["label"].tolist() == [True]
    assert (facts["forward"].tolist(), facts["backward"].tolist()) == ([[0.25]], [[0.25]])


def test_without_special_tokens_the_root_has_no_weight(random_map, axis_of):
    axis = axis_of("0 1")
    facts = pair_rows(random_map(2, 2, 2, causal=True), Frame(axis, axis, True), parsed((0, 1, 0), (1, -1, 0)))
    for name in ("forward", "backward"):
        assert np.isnan(facts[name]).tolist() == [[True, False, True, False]] * 2
    assert (facts["backward"][:, 1] == 0).all()  # word 0 does not see word 1


def test_a_word_whose_governor_has_no_tokens_has_no_true_label(pieced):
    facts = pair_rows(pieced.weights, pieced.frame, parsed((4, 5, 0), (5, -1, 0), (6, 4, 0)))
    assert keys_of(facts) == [(0, 4, -1), (0, 4, 6), (0, 6, -1), (0, 6, 4)]
    assert facts["label"].tolist() == [False, False, False, True]


def test_no_words_give_no_rows(axis_of):
    axis = axis_of("C S", n_words=0)
    facts = pair_rows(np.full((3, 2, 2), 0.5), Frame(axis, axis), parsed())
    assert keys_of(facts) == []
    assert facts["label"].dtype == bool
    assert facts["forward"].shape == facts["backward"].shape == (3, 0)


def test_in_a_cross_map_the_weights_are_unknown(crossed):
    facts = pair_rows(crossed.weights, crossed.frame, parsed((0, 1, 0), (1, -1, 0)))
    assert keys_of(facts) == [(0, 0, -1), (0, 0, 1), (0, 1, -1), (0, 1, 0)]
    assert np.isnan(facts["forward"]).all()
    assert np.isnan(facts["backward"]).all()


def test_a_governor_that_the_example_does_not_have_is_refused(map_x):
    with pytest.raises(BadInput, match=r"column governor .* 2; expected -1 to 2, exclusive"):
        pair_rows(map_x.weights, map_x.frame, parsed((0, 2, 0)))
