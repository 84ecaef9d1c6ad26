"""This file tests the antecedents that mentions attend to."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.mentions import mention_facts


def mentions(*places):
    """The columns of mentions from (start word, head word), which is the last."""
    start, head = np.array(places, np.int32).reshape(-1, 2).T
    numbers = np.arange(len(places), dtype=np.int32)
    return {"mention": numbers, "start_word": start, "end_word": head + 1, "head_word": head}


def test_the_worked_example_chooses_among_heads_of_earlier_mentions(syntax_map):
    # Words 0 1 2 between [CLS] and [SEP]: rows (.1 .1 .25) (.3 .35 .2) (.6 .2 .1).
    facts = mention_facts(syntax_map.weights, syntax_map.frame, mentions((0, 0), (1, 1), (2, 2)))
    assert facts["mention"].tolist() == [0, 1, 2]
    assert facts["attends_to"].tolist() == [[-1, 0, 0]]
    np.testing.assert_allclose(facts["attends_to_weight"], [[0, 0.3, 0.6]], rtol=1e-6)
    # Column of word 1: .1 from word 0; column of word 2: .25 from word 0 and .2 from word 1.
    assert facts["attended_by"].tolist() == [[-1, 0, 0]]
    np.testing.assert_allclose(facts["attended_by_weight"], [[0, 0.1, 0.25]], rtol=1e-6)


def test_all_words_are_those_that_word_facts_choose_among(syntax_map):
    rows = mentions((0, 0), (1, 1), (2, 2))
    facts = mention_facts(syntax_map.weights, syntax_map.frame, rows, candidates="all_words")
    # The worked example for governors: 3, 1, 1 and 3, 3, 1 counted from 1.
    assert facts["attends_to"].tolist() == [[2, 0, 0]]
    assert facts["attended_by"].tolist() == [[2, 2, 0]]


@pytest.mark.parametrize(
    "candidates", ["preceding_mention_heads", "earlier_mention_heads", "mention_heads", "all_words"]
)
@pytest.mark.parametrize("seed", range(4))
def test_choices_are_what_their_definition_says(candidates, seed, pieced, word_weight):
    random = np.random.default_rng(seed)
    start = random.integers(0, 7, 6)
    head_word = np.minimum(start + random.integers(0, 3, 6), 6)
    end = np.minimum(head_word + random.integers(1, 3, 6), 7)
    rows = {**mentions(*zip(start, head_word, strict=True)), "end_word": end}
    facts = mention_facts(pieced.weights, pieced.frame, rows, candidates=candidates)
    word = pieced.frame.keys.word
    for head, weights in enumerate(pieced.weights):
        for row in range(6):
            own = head_word[row]
            choices = {
                "preceding_mention_heads": {head_word[other] for other in range(6) if end[other] <= start[row]},
                "earlier_mention_heads": {head_word[other] for other in range(6) if start[other] < start[row]},
                "mention_heads": set(head_word),
                "all_words": set(range(7)),
            }[candidates] - {own, 5}
            if own == 5 or not choices:
                best_to, best_by = (0, -1), (0, -1)
            else:
                best_to = max((word_weight(weights, word, own, other), -other) for other in choices)
                best_by = max((word_weight(weights, word, other, own), -other) for other in choices)
            for name, (weight, negative) in (("attends_to", best_to), ("attended_by", best_by)):
                expected = -1 if weight == 0 else -negative
                assert facts[name][head, row] == expected
                assert facts[f"{name}_weight"][head, row] == pytest.approx(weight, rel=1e-6)


def test_a_mention_with_the_same_head_word_is_no_candidate(syntax_map):
    # Words 0 to 2, 1, and 2; the first and the last are headed by word 2. Only the second ends before the last.
    rows = mentions((0, 2), (1, 1), (2, 2))
    facts = mention_facts(syntax_map.weights, syntax_map.frame, rows)
    assert facts["attends_to"].tolist() == [[-1, -1, 1]]
    facts = mention_facts(syntax_map.weights, syntax_map.frame, rows, candidates="earlier_mention_heads")
    assert facts["attends_to"].tolist() == [[-1, 2, 1]]
    np.testing.assert_allclose(facts["attends_to_weight"], [[0, 0.2, 0.2]], rtol=1e-6)
    facts = mention_facts(syntax_map.weights, syntax_map.frame, rows, candidates="mention_heads")
    assert facts["attends_to"].tolist() == [[1, 2, 1]]


def test_a_mention_that_starts_at_the_same_word_is_no_candidate(syntax_map):
    rows = mentions((1, 1), (1, 2))
    for candidates in ("preceding_mention_heads", "earlier_mention_heads"):
        facts = mention_facts(syntax_map.weights, syntax_map.frame, rows, candidates=candidates)
        assert facts["attends_to"].tolist() == [[-1, -1]]


def test_the_lowest_word_wins_a_tie_whatever_the_order_of_mentions(axis_of):
    axis = axis_of("0 1 2")
    rows = mentions((2, 2), (1, 1), (0, 0))
    facts = mention_facts(np.full((1, 3, 3), 1 / 3), Frame(axis, axis), rows)
    assert facts["attends_to"].tolist() == facts["attended_by"].tolist() == [[0, 0, -1]]


def test_in_a_causal_map_no_antecedent_attends_to_a_later_mention(random_map, axis_of):
    axis = axis_of("0 1 2")
    facts = mention_facts(random_map(2, 3, 3, causal=True), Frame(axis, axis, True), mentions((0, 0), (2, 2)))
    assert facts["attends_to"].tolist() == [[-1, 0]] * 2
    assert facts["attended_by"].tolist() == [[-1, -1]] * 2
    assert (facts["attended_by_weight"] == 0).all()


def test_no_mentions_no_words_and_cross_maps_choose_nothing(axis_of, map_x, crossed):
    assert mention_facts(map_x.weights, map_x.frame, mentions())["attends_to"].shape == (1, 0)
    axis = axis_of("C S", n_words=0)
    assert mention_facts(np.full((1, 2, 2), 0.5), Frame(axis, axis), mentions())["attended_by"].shape == (1, 0)
    facts = mention_facts(crossed.weights, crossed.frame, mentions((0, 0), (1, 1)))
    assert facts["attends_to"].tolist() == facts["attended_by"].tolist() == [[-1, -1]] * 2
    assert (facts["attends_to_weight"] == 0).all()


def test_what_does_not_fit_is_refused(map_x):
    with pytest.raises(BadInput, match=r"candidates = 'nearest'; expected 'preceding_mention_heads', .* 'all_words'"):
        mention_facts(map_x.weights, map_x.frame, mentions((0, 0)), candidates="nearest")
    with pytest.raises(BadInput, match=r"head_word .* 2; expected 0 to 2, exclusive"):
        mention_facts(map_x.weights, map_x.frame, mentions((0, 2)))
