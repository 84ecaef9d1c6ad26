"""This file tests maps between words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.pieces import pieces_of
from attnstore.reduce.words import word_map


def plain_word_map(weights, frame, pieces):
    """The word map by its definition, one cell at a time, for words that have tokens; zeros for others."""
    n_heads = len(weights)
    result = np.zeros((n_heads, frame.queries.n_words, frame.keys.n_words))
    for head in range(n_heads):
        for word_q in range(frame.queries.n_words):
            rows = weights[head, frame.queries.word == word_q]
            if not len(rows):
                continue
            columns = [rows[:, frame.keys.word == word].sum(axis=1) for word in range(frame.keys.n_words)]
            others = rows[:, frame.keys.word < 0]
            if pieces == "first" or len(rows) == 1:
                row = [column[0] for column in columns]
            elif pieces == "mean":
                row = [column.mean() for column in columns]
            else:
                total = sum(column.max() for column in columns) + others.max(axis=0).sum()
                row = [column.max() / total for column in columns]
            result[head, word_q] = row
    return result


@pytest.fixture(scope="module")
def merged_x(map_x, axis_of):
    """The worked example with a and b as pieces of one word."""
    axis = axis_of("C 0 0 S")
    return map_x.weights, Frame(axis, axis)


def test_fixture_words_mean(merged_x):
    rows = word_map(*merged_x, specials=True)[0]
    np.testing.assert_allclose(rows, [[0.1, 0.5, 0.4], [0.325, 0.5, 0.175], [0.7, 0.2, 0.1]], atol=1e-12)


def test_fixture_words_first(merged_x):
    rows = word_map(*merged_x, pieces="first", specials=True)[0]
    np.testing.assert_allclose(rows, [[0.1, 0.5, 0.4], [0.4, 0.5, 0.1], [0.7, 0.2, 0.1]], atol=1e-12)


def test_fixture_words_max(merged_x):
    # Pieces (.4 .5 .1) and (.25 .5 .25): the larger of each is (.4 .5 .25), and their sum 1.15.
    rows = word_map(*merged_x, pieces="max", specials=True)[0]
    np.testing.assert_allclose(rows, [[0.1, 0.5, 0.4], [0.347826, 0.434783, 0.217391], [0.7, 0.2, 0.1]], atol=5e-7)


@given(data=st.data(), pieces=st.sampled_from(["mean", "first", "max"]))
def test_the_word_map_is_what_its_definition_says(data, pieces, examples):
    case = data.draw(examples)
    expected = plain_word_map(case.weights, case.frame, pieces)
    np.testing.assert_allclose(word_map(case.weights, case.frame, pieces=pieces), expected, atol=1e-12)


@given(data=st.data(), pieces=st.sampled_from(["mean", "first", "max"]))
def test_word_maps_keep_row_sums(data, pieces, examples):
    case = data.draw(examples)
    sums = word_map(case.weights, case.frame, pieces=pieces, specials=True).sum(axis=-1)
    np.testing.assert_allclose(sums, 1, atol=1e-12)


@given(data=st.data(), pieces=st.sampled_from(["mean", "first", "max"]))
def test_words_alone_are_cut_out_of_the_map_with_special_tokens(data, pieces, examples):
    case = data.draw(examples)
    whole = word_map(case.weights, case.frame, pieces=pieces, specials=True)
    alone = word_map(case.weights, case.frame, pieces=pieces)
    queries = pieces_of(case.frame.queries, specials=True).word
    keys = pieces_of(case.frame.keys, specials=True).word
    for place_q, word_q in enumerate(queries):
        for place_k, word_k in enumerate(keys):
            if word_q >= 0 and word_k >= 0:
                np.testing.assert_array_equal(alone[:, word_q, word_k], whole[:, place_q, place_k])


@given(data=st.data())
def test_leading_axes_are_carried_along(data, examples):
    case = data.draw(examples)
    stacked = np.stack([case.weights, case.weights[::-1]])[:, None]  # [2, 1, head, query, key]
    merged = word_map(stacked, case.frame)
    assert merged.shape[:3] == stacked.shape[:3]
    np.testing.assert_array_equal(merged[0, 0], word_map(case.weights, case.frame))
    np.testing.assert_array_equal(merged[1, 0], word_map(case.weights[::-1], case.frame))


def test_a_map_without_head_axis_is_merged_too(merged_x):
    weights, frame = merged_x
    np.testing.assert_array_equal(word_map(weights[0], frame), word_map(weights, frame)[0])


def test_a_word_without_tokens_has_zeros_and_keeps_its_index(map_x, axis_of):
    axis = axis_of("C 1 3 S", n_words=5)
    expected = np.zeros((5, 5))
    expected[1, [1, 3]], expected[3, [1, 3]] = [0.3, 0.2], [0.25, 0.25]
    np.testing.assert_array_equal(word_map(map_x.weights, Frame(axis, axis))[0], expected)


def test_words_out_of_token_order_are_put_at_their_index(map_x, axis_of):
    axis = axis_of("C 1 0 S")
    np.testing.assert_array_equal(word_map(map_x.weights, Frame(axis, axis))[0], [[0.25, 0.25], [0.2, 0.3]])


@pytest.mark.parametrize("tokens", ["C 0 1 S", "C 0 0 S"])
def test_the_result_never_shares_memory_with_the_map(tokens, map_x, axis_of):
    axis = axis_of(tokens)
    weights = map_x.weights.copy()
    for pieces in ("mean", "first", "max"):
        for specials in (False, True):
            word_map(weights, Frame(axis, axis), pieces=pieces, specials=specials)[:] = 9
    np.testing.assert_array_equal(weights, map_x.weights)


def test_half_precision_maps_come_back_in_single(map_x):
    assert word_map(map_x.weights.astype(np.float16), map_x.frame).dtype == np.float32


def test_a_zero_row_stays_zero_under_max(axis_of):
    axis = axis_of("0 0")
    assert word_map(np.zeros((1, 2, 2)), Frame(axis, axis), pieces="max").tolist() == [[[0]]]


def test_an_unknown_way_to_combine_pieces_is_refused(map_x):
    with pytest.raises(BadInput, match="pieces = 'last'; expected 'mean', 'first', 'max'"):
        word_map(map_x.weights, map_x.frame, pieces="last")
