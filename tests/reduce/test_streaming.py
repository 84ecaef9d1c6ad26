"""This file tests the attention within a window of first and recent tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.streaming import streaming_facts


def test_the_worked_example(map_x):
    # The first key or the query itself: .1, .4 + .3, .25 + .25, .7 + .1.
    facts = streaming_facts(map_x.weights, map_x.frame, {}, first=1, recent=1)
    assert facts["n_queries"].tolist() == [4]
    assert facts["mass_sum"] == pytest.approx(2.1)


@pytest.mark.parametrize("cells", [1 << 18, 30])
@given(data=st.data(), first=st.integers(0, 5), recent=st.integers(0, 5))
def test_the_window_is_what_its_definition_says(cells, data, first, recent, examples):
    case = data.draw(examples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS", cells)
        facts = streaming_facts(case.weights, case.frame, {}, first=first, recent=recent)
    n_heads, n_queries, n_keys = case.weights.shape
    assert facts["n_queries"].tolist() == [n_queries] * n_heads
    window = [(i, j) for i in range(n_queries) for j in range(n_keys) if j < first or abs(i - j) < recent]
    expected = [sum(weights[cell] for cell in window) for weights in case.weights]
    np.testing.assert_allclose(facts["mass_sum"], expected if case.frame.is_self else np.nan, atol=1e-9)


def test_in_a_causal_map_recent_keys_are_the_last_up_to_and_with_the_query(axis_of):
    axis = axis_of("0 1 2 3")
    weights = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    facts = streaming_facts(weights[None], Frame(axis, axis, True), {}, first=0, recent=2)
    assert facts["mass_sum"] == pytest.approx(1 + 1 + 2 / 3 + 2 / 4)


def test_a_window_as_long_as_the_map_keeps_everything(random_map, axis_of):
    axis = axis_of(" ".join(map(str, range(20))))
    facts = streaming_facts(random_map(2, 20, 20), Frame(axis, axis), {})
    np.testing.assert_allclose(facts["mass_sum"], 20, rtol=1e-6)


def test_an_empty_window_keeps_nothing(map_x):
    assert streaming_facts(map_x.weights, map_x.frame, {}, first=0, recent=0)["mass_sum"].tolist() == [0]


@pytest.mark.parametrize("parameters", [{"first": -1}, {"recent": -1}])
def test_negative_numbers_are_refused(parameters, map_x):
    with pytest.raises(BadInput, match="expected 0 or more"):
        streaming_facts(map_x.weights, map_x.frame, {}, **parameters)
