"""This file tests the attention at each distance from the query."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.offsets import offset_facts


def test_the_worked_example(map_x):
    facts = offset_facts(map_x.weights, map_x.frame, {}, reach=1)
    assert facts["n_queries"].tolist() == [4]
    # Previous: .4 .25 .1; self: .1 .3 .25 .1; next: .2 .2 .25, which are the fixture's means times their queries.
    np.testing.assert_allclose(facts["mass"], [[0.75, 0.75, 0.65]], rtol=1e-12)
    np.testing.assert_allclose(facts["mass"][0] / [3, 4, 3], [0.25, 0.1875, 0.216667], atol=5e-7)


@given(data=st.data(), reach=st.integers(0, 14))
def test_every_offset_is_the_sum_over_its_pairs(data, reach, examples):
    case = data.draw(examples)
    facts = offset_facts(case.weights, case.frame, {}, reach=reach)
    n_heads, n_queries, n_keys = case.weights.shape
    assert facts["n_queries"].tolist() == [n_queries] * n_heads
    assert facts["mass"].shape == (n_heads, 2 * reach + 1)
    for offset in range(-reach, reach + 1):
        pairs = [(query, query + offset) for query in range(n_queries) if 0 <= query + offset < n_keys]
        total = [sum(weights[pair] for pair in pairs) for weights in case.weights]
        expected = total if case.frame.is_self else [np.nan] * n_heads
        np.testing.assert_allclose(facts["mass"][:, reach + offset], expected, atol=1e-12)


def test_a_reach_beyond_the_map_leaves_no_weight_out_and_adds_zeros(random_map, axis_of):
    axis = axis_of("0 1 2")
    mass = offset_facts(random_map(2, 3, 3, causal=True), Frame(axis, axis, True), {})["mass"]
    assert mass.shape == (2, 33)
    np.testing.assert_allclose(mass.sum(axis=1), 3, rtol=1e-6)
    assert (mass[:, 17:] == 0).all()
    assert (mass[:, :14] == 0).all()


def test_a_map_of_one_token_has_only_itself(axis_of):
    axis = axis_of("C")
    assert offset_facts(np.ones((1, 1, 1)), Frame(axis, axis), {}, reach=2)["mass"].tolist() == [[0, 0, 1, 0, 0]]


def test_token_order_reversal_reverses_the_offsets(random_map, axis_of):
    axis = axis_of("0 1 2 3 4")
    weights, frame = random_map(2, 5, 5), Frame(axis, axis)
    there, back = (offset_facts(order, frame, {}, reach=4)["mass"] for order in (weights, weights[:, ::-1, ::-1]))
    np.testing.assert_allclose(there, back[:, ::-1], rtol=1e-6)


def test_a_negative_reach_is_refused(map_x):
    with pytest.raises(BadInput, match="reach = -1; expected 0 or more"):
        offset_facts(map_x.weights, map_x.frame, {}, reach=-1)
