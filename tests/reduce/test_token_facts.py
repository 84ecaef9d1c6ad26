"""This file tests the facts of query tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.format.tables import TOKEN_FACTS
from attnstore.reduce.axes import Frame
from attnstore.reduce.token_facts import token_facts


def exact_entropy(row):
    positive = row[row > 0]
    return -(positive * np.log(positive)).sum()


def test_the_facts_of_the_worked_example(map_x):
    facts = token_facts(map_x.weights, map_x.frame)
    assert facts["argmax"].tolist() == [[3, 0, 0, 0]]
    np.testing.assert_allclose(facts["max"], [[0.4, 0.4, 0.25, 0.7]], rtol=1e-7)
    # -(.1 ln .1 + .2 ln .2 + .3 ln .3 + .4 ln .4) = .2302585 + .3218876 + .3611918 + .3665163
    # -(.7 ln .7 + 3 * .1 ln .1) = .2496725 + .6907755
    np.testing.assert_allclose(facts["entropy_nats"], [[1.2798542, 1.2798542, np.log(4), 0.9404480]], atol=2e-7)


def test_the_lowest_key_wins_a_tie(axis_of):
    axis = axis_of("C 0 1 S")
    weights = np.array([[[0.2, 0.3, 0.2, 0.3], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.25] * 4]], np.float32)
    assert token_facts(weights, Frame(axis, axis))["argmax"].tolist() == [[1, 0, 2, 0]]


def test_columns_and_types_are_those_of_the_table(map_x):
    facts = token_facts(map_x.weights, map_x.frame)
    assert list(facts) == [name for name in TOKEN_FACTS.names if name not in ("example", "kind", "token")]
    assert [column.dtype for column in facts.values()] == [np.int32, np.float32, np.float32]


@given(data=st.data())
def test_every_row_has_its_argmax_maximum_and_entropy(data, examples):
    case = data.draw(examples)
    facts = token_facts(case.weights, case.frame)
    np.testing.assert_array_equal(facts["argmax"], case.weights.argmax(axis=-1))
    np.testing.assert_allclose(facts["max"], case.weights.max(axis=-1), rtol=1e-6)
    np.testing.assert_allclose(facts["entropy_nats"], np.apply_along_axis(exact_entropy, -1, case.weights), atol=1e-6)


def test_certainty_has_an_entropy_of_exactly_zero(axis_of):
    axis = axis_of("C 0 1 S")
    entropy = token_facts(np.eye(4, dtype=np.float32)[None], Frame(axis, axis))["entropy_nats"]
    assert entropy.tolist() == [[0, 0, 0, 0]]
    assert not np.signbit(entropy).any()


def test_weights_too_small_for_a_normal_number_add_nothing(axis_of):
    axis = axis_of("C S", n_words=0)
    weights = np.array([[[1, 1e-42], [1e-40, 1]]], np.float32)
    np.testing.assert_allclose(token_facts(weights, Frame(axis, axis))["entropy_nats"], 0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_long_maps_are_the_same_in_blocks(causal, random_map, axis_of):
    # 2 * 700 * 700 weights are four blocks of 2^18.
    weights = random_map(2, 700, 700, causal=causal)
    axis = axis_of(" ".join(map(str, range(700))))
    facts = token_facts(weights, Frame(axis, axis, causal))
    np.testing.assert_array_equal(facts["argmax"], weights.argmax(axis=-1))
    np.testing.assert_array_equal(facts["max"], weights.max(axis=-1))
    wide = weights.astype(np.float64)
    expected = -(wide * np.log(np.where(wide > 0, wide, 1))).sum(axis=-1)
    np.testing.assert_allclose(facts["entropy_nats"], expected, rtol=2e-6, atol=2e-7)


def test_a_stack_of_layers_is_refused(map_x):
    with pytest.raises(BadInput, match="shape \\[1, 1, 4, 4\\]"):
        token_facts(map_x.weights[None], map_x.frame)
