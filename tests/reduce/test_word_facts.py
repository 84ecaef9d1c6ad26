"""This file tests which words attend to which."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.format.tables import WORD_FACTS
from attnstore.reduce.axes import Frame
from attnstore.reduce.word_facts import word_facts
from attnstore.reduce.words import word_map


def plain_word_facts(weights, frame, pieces):
    """The facts by their definition, from the word map, one word at a time."""
    words = word_map(weights, frame, pieces=pieces)
    if frame.is_self:
        words[:, range(frame.keys.n_words), range(frame.keys.n_words)] = 0
    n_words = frame.queries.n_words
    facts = {
        "attends_to": np.full((len(words), n_words), -1),
        "attends_to_weight": np.zeros((len(words), n_words), np.float32),
        "attended_by": np.full((len(words), n_words), -1),
        "attended_by_weight": np.zeros((len(words), n_words), np.float32),
    }
    for head, heads_map in enumerate(words):
        for word in range(n_words):
            looks = [("attends_to", heads_map[word])]
            if frame.is_self:
                looks.append(("attended_by", heads_map[:, word]))
            for name, line in looks:
                if line.size and line.max() > 0:
                    facts[name][head, word] = line.tolist().index(line.max())  # the first of equals
                    facts[f"{name}_weight"][head, word] = line.max()
    return facts


def test_fixture_syntax(syntax_map):
    # Counted from 1, w1 w2 w3 have the governors 3 1 1 by their rows and 3 3 1 by their columns.
    facts = word_facts(syntax_map.weights, syntax_map.frame)
    assert facts["attends_to"].tolist() == [[2, 0, 0]]
    np.testing.assert_allclose(facts["attends_to_weight"], [[0.25, 0.3, 0.6]], rtol=1e-7)
    assert facts["attended_by"].tolist() == [[2, 2, 0]]
    np.testing.assert_allclose(facts["attended_by_weight"], [[0.6, 0.2, 0.25]], rtol=1e-7)


def test_columns_and_types_are_those_of_the_table(syntax_map):
    facts = word_facts(syntax_map.weights, syntax_map.frame)
    assert list(facts) == [name for name in WORD_FACTS.names if name not in ("example", "kind", "word")]
    assert [column.dtype for column in facts.values()] == [np.int32, np.float32, np.int32, np.float32]


@given(data=st.data(), pieces=st.sampled_from(["mean", "first", "max"]))
def test_facts_are_what_their_definition_says(data, pieces, examples):
    case = data.draw(examples)
    facts = word_facts(case.weights, case.frame, pieces=pieces)
    for name, expected in plain_word_facts(case.weights, case.frame, pieces).items():
        np.testing.assert_array_equal(facts[name], expected, err_msg=name)


def test_the_lowest_word_wins_a_tie(axis_of):
    axis = axis_of("0 1 2 3")
    facts = word_facts(np.full((1, 4, 4), 0.25, np.float32), Frame(axis, axis))
    assert facts["attends_to"].tolist() == [[1, 0, 0, 0]]
    assert facts["attended_by"].tolist() == [[1, 0, 0, 0]]


def test_the_lowest_word_wins_a_tie_out_of_token_order(axis_of):
    axis = axis_of("3 2 1 0")
    facts = word_facts(np.full((1, 4, 4), 0.25, np.float32), Frame(axis, axis))
    assert facts["attends_to"].tolist() == [[1, 0, 0, 0]]
    assert facts["attended_by"].tolist() == [[1, 0, 0, 0]]


def test_the_lowest_word_wins_a_tie_across_blocks(axis_of):
    # 700 * 700 weights are two blocks of 2^18, cut between query words 373 and 374.
    axis = axis_of(" ".join(map(str, range(700))))
    facts = word_facts(np.full((1, 700, 700), 1 / 700, np.float32), Frame(axis, axis))
    assert facts["attends_to"].tolist() == [[1] + [0] * 699]
    assert facts["attended_by"].tolist() == [[1] + [0] * 699]


@pytest.mark.parametrize("pieces", ["mean", "first", "max"])
def test_long_maps_are_the_same_in_blocks(pieces, random_map, axis_of):
    # Words of one to three tokens; 2 * 700 * 700 weights are four blocks of 2^18.
    axis = axis_of("C " + " ".join(f"{word} " * (1 + word % 3) for word in range(349)) + " S")
    weights = random_map(2, 699, 699)
    facts = word_facts(weights, Frame(axis, axis), pieces=pieces)
    for name, expected in plain_word_facts(weights, Frame(axis, axis), pieces).items():
        np.testing.assert_array_equal(facts[name], expected, err_msg=name)


def test_a_word_that_no_other_word_weighs_has_none(axis_of):
    # Every word looks at itself alone, and the one token of [SEP] at [SEP].
    axis = axis_of("0 1 S")
    facts = word_facts(np.eye(3, dtype=np.float32)[None], Frame(axis, axis))
    assert facts["attends_to"].tolist() == [[-1, -1]]
    assert facts["attends_to_weight"].tolist() == [[0, 0]]
    assert facts["attended_by"].tolist() == [[-1, -1]]


def test_a_single_word_has_no_other(map_x, axis_of):
    axis = axis_of("C 0 0 S")
    facts = word_facts(map_x.weights, Frame(axis, axis))
    assert facts["attends_to"].tolist() == [[-1]]
    assert facts["attended_by"].tolist() == [[-1]]


def test_words_without_tokens_neither_attend_nor_are_attended_to(map_x, axis_of):
    axis = axis_of("C 1 3 S", n_words=5)
    facts = word_facts(map_x.weights, Frame(axis, axis))
    assert facts["attends_to"].tolist() == [[-1, 3, -1, 1, -1]]
    assert facts["attended_by"].tolist() == [[-1, 3, -1, 1, -1]]
    np.testing.assert_allclose(facts["attends_to_weight"], [[0, 0.2, 0, 0.25, 0]], rtol=1e-7)


@pytest.mark.parametrize("n_words", [0, 2])
def test_an_example_of_special_tokens_alone_has_no_edges(n_words, map_x, axis_of):
    axis = axis_of("C M M S", n_words=n_words)
    for name, values in word_facts(map_x.weights, Frame(axis, axis)).items():
        assert values.tolist() == [[0 if name.endswith("weight") else -1] * n_words]


def test_cross_maps_have_key_words_and_keep_the_diagonal(axis_of):
    frame = Frame(axis_of("0 1 S"), axis_of("C 0 1 2"))
    weights = np.array([[[0.1, 0.6, 0.2, 0.1], [0.4, 0.1, 0.2, 0.3], [0, 0, 0, 1]]])
    facts = word_facts(weights, frame)
    assert facts["attends_to"].tolist() == [[0, 2]]
    np.testing.assert_allclose(facts["attends_to_weight"], [[0.6, 0.3]], rtol=1e-7)
    assert facts["attended_by"].tolist() == [[-1, -1]]
    assert facts["attended_by_weight"].tolist() == [[0, 0]]


@given(governors=st.lists(st.integers(0, 7), min_size=2, max_size=8))
def test_a_perfect_parser_map_scores_every_governor_right(governors, axis_of):
    n_words = len(governors)
    # Governor indices within the sentence, and never the word itself; word 0 plays the root.
    governors = [governor % n_words for governor in governors]
    edges = [(word, governor) for word, governor in enumerate(governors) if word and governor != word]
    axis = axis_of("C " + " ".join(map(str, range(n_words))) + " S")
    towards = np.full((n_words + 2, n_words + 2), 0.01)
    for word, governor in edges:
        towards[word + 1, governor + 1] = 1
    facts = word_facts(np.stack([towards, towards.T]), Frame(axis, axis))
    for word, governor in edges:
        assert facts["attends_to"][0, word] == governor
        assert facts["attended_by"][1, word] == governor


def test_the_map_is_left_as_it_was(syntax_map):
    weights = syntax_map.weights.copy()
    word_facts(weights, syntax_map.frame)
    np.testing.assert_array_equal(weights, syntax_map.weights)


def test_half_precision_maps_are_merged_in_single(random_map, axis_of):
    axis = axis_of("C 0 0 1 2 2 2 3 S")
    weights = random_map(2, 9, 9).astype(np.float16)
    half = word_facts(weights, Frame(axis, axis))
    single = word_facts(weights.astype(np.float32), Frame(axis, axis))
    for name, values in half.items():
        np.testing.assert_array_equal(values, single[name])


def test_an_unknown_way_to_combine_pieces_is_refused(map_x):
    with pytest.raises(BadInput, match="pieces = 'sum'"):
        word_facts(map_x.weights, map_x.frame, pieces="sum")
