"""This file tests the attention between the ends of links."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.links import link_facts

VALUES = ("source_to_target", "target_to_source", "source_to_target_mean", "target_to_source_mean")


def links(*spans, text=None):
    """The columns of links from (source start, source end, target start, target end)."""
    names = ("source_start_word", "source_end_word", "target_start_word", "target_end_word")
    columns = np.array(spans, np.int32).reshape(-1, 4).T
    rows = {"link": np.arange(len(spans), dtype=np.int32)} | dict(zip(names, columns, strict=True))
    return rows if text is None else rows | {"text": np.array(text, object)}


def test_the_worked_example_between_a_and_b(map_x):
    facts = link_facts(map_x.weights, map_x.frame, links((0, 1, 1, 2)))
    assert facts["link"].tolist() == [0]
    for name, value in zip(VALUES, [0.2, 0.25, 0.2, 0.25], strict=True):
        np.testing.assert_allclose(facts[name], [[value]], rtol=1e-6)


def test_the_worked_example_with_both_words_as_source(map_x):
    # Sources a and b, target b: queries .2 and .25 at key b; query b at keys .25 and .25.
    facts = link_facts(map_x.weights, map_x.frame, links((0, 2, 1, 2)))
    found = [facts[name].item() for name in VALUES]
    assert found == pytest.approx([0.25, 0.25, 0.225, 0.25], rel=1e-6)


def test_word_links_are_largest_and_mean_over_all_pairs_of_words(pieced, word_weight):
    spans = [(0, 2, 2, 4), (3, 4, 0, 3), (4, 7, 0, 1), (1, 2, 1, 2)]
    facts = link_facts(pieced.weights, pieced.frame, links(*spans))
    present = {0, 1, 2, 3, 4, 6}
    for head, weights in enumerate(pieced.weights):
        for row, (start, end, target_start, target_end) in enumerate(spans):
            source = sorted(present & set(range(start, end)))
            target = sorted(present & set(range(target_start, target_end)))
            word = pieced.frame.keys.word
            forward = [word_weight(weights, word, a, b) for a in source for b in target]
            backward = [word_weight(weights, word, b, a) for a in source for b in target]
            expected = [max(forward), max(backward), np.mean(forward), np.mean(backward)]
            assert [facts[name][head, row] for name in VALUES] == pytest.approx(expected, rel=1e-5)


def test_token_links_are_largest_and_mean_over_all_pairs_of_tokens(pieced):
    facts = link_facts(pieced.weights, pieced.frame, links((0, 2, 2, 3)), level="token")
    forward = pieced.weights[:, [1, 2, 3]][:, :, [4, 5, 6]]
    backward = pieced.weights[:, [4, 5, 6]][:, :, [1, 2, 3]]
    np.testing.assert_allclose(facts["source_to_target"][:, 0], forward.max(axis=(1, 2)), rtol=1e-6)
    np.testing.assert_allclose(facts["source_to_target_mean"][:, 0], forward.mean(axis=(1, 2)), rtol=1e-6)
    np.testing.assert_allclose(facts["target_to_source"][:, 0], backward.max(axis=(1, 2)), rtol=1e-6)
    np.testing.assert_allclose(facts["target_to_source_mean"][:, 0], backward.mean(axis=(1, 2)), rtol=1e-6)


def test_zipped_links_pair_tokens_in_turn_at_the_first_copy_of_their_text(pieced):
    # Tokens by position: the source is 8 | 9 10, the target 4 5 6; 9 reads like 3 and 5 like 1.
    text = ["[CLS]", "x", "##y", "z", "p", "x", "r", "[SEP]", "s", "z", "u", "v", "[SEP]"]
    rows = links((3, 5, 2, 3), (3, 4, 2, 3), text=text)
    facts = link_facts(pieced.weights, pieced.frame, rows, level="token", pairs="zip")
    queries, keys = [8, 3, 10], [4, 1, 6]
    forward, backward = pieced.weights[:, queries, keys], pieced.weights[:, keys, queries]
    np.testing.assert_allclose(facts["source_to_target"][:, 0], forward.max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(facts["source_to_target_mean"][:, 0], forward.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(facts["target_to_source"][:, 0], backward.max(axis=1), rtol=1e-6)
    # A span of one token leaves one pair.
    np.testing.assert_allclose(facts["source_to_target"][:, 1], pieced.weights[:, 8, 4], rtol=1e-6)


@pytest.mark.parametrize("level", ["word", "token"])
def test_a_span_without_tokens_has_no_value_and_others_keep_theirs(level, pieced):
    rows = links((5, 6, 0, 1), (0, 1, 1, 2), (0, 1, 2, 2), (1, 2, 0, 1))
    facts = link_facts(pieced.weights, pieced.frame, rows, level=level)
    for name in VALUES:
        assert np.isnan(facts[name]).tolist() == [[True, False, True, False]] * 5
    np.testing.assert_array_equal(facts["source_to_target"][:, 1], facts["target_to_source"][:, 3])


@pytest.mark.parametrize("level", ["word", "token"])
def test_no_links_give_no_rows(level, map_x):
    facts = link_facts(map_x.weights, map_x.frame, links(), level=level)
    assert facts["link"].shape == (0,)
    assert {facts[name].shape for name in VALUES} == {(1, 0)}


def test_in_a_causal_map_earlier_words_do_not_see_later_ones(random_map, axis_of):
    axis = axis_of("0 1 1 2")
    facts = link_facts(random_map(2, 4, 4, causal=True), Frame(axis, axis, True), links((0, 1, 1, 3)))
    assert (facts["source_to_target"] == 0).all()
    assert (facts["target_to_source"] > 0).all()


def test_in_a_cross_map_nothing_is_known(crossed):
    facts = link_facts(crossed.weights, crossed.frame, links((0, 1, 1, 2), (7, 8, 7, 8)))
    assert facts["link"].tolist() == [0, 1]
    assert all(facts[name].shape == (2, 2) and np.isnan(facts[name]).all() for name in VALUES)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"level": "piece"}, "level = 'piece'; expected 'word' or 'token'"),
        ({"pairs": "some"}, "pairs = 'some'; expected 'all' or 'zip'"),
        ({"pairs": "zip"}, "pairs = 'zip' with level = 'word'; expected level = 'token'"),
        ({"level": "token", "pairs": "zip"}, "expected a column text"),
        ({"pieces": "last"}, "pieces = 'last'"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(parameters, message, map_x):
    with pytest.raises(BadInput, match=message):
        link_facts(map_x.weights, map_x.frame, links((0, 1, 1, 2)), **parameters)


def test_a_span_outside_the_example_is_refused(map_x):
    with pytest.raises(BadInput, match=r"target_end_word .* 3; expected 0 to 3, exclusive"):
        link_facts(map_x.weights, map_x.frame, links((0, 1, 1, 3)))
