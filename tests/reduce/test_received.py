"""This file tests the attention that tokens receive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.received import received_facts


def test_the_worked_example(map_x):
    facts = received_facts(map_x.weights, map_x.frame, {})
    assert facts["token"].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(facts["received"], [[0.3625, 0.2125, 0.2125, 0.2125]], rtol=1e-6)
    # Columns from the diagonal down: (.1 .4 .25 .7) (.3 .25 .1) (.25 .1) (.1).
    np.testing.assert_allclose(facts["received_later"], [[0.3625, 0.65 / 3, 0.175, 0.1]], rtol=1e-6)
    np.testing.assert_allclose(facts["from_cls"], [[0.1, 0.2, 0.3, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(facts["from_sep"], [[0.7, 0.1, 0.1, 0.1]], rtol=1e-6)


def test_fixture_k4_with_the_feature_on_a_and_b(map_x):
    received = received_facts(map_x.weights, map_x.frame, {})["received"]
    assert received[0, [1, 2]].max() == pytest.approx(0.2125, rel=1e-6)


@given(data=st.data())
def test_every_column_is_what_its_definition_says(data, examples):
    case = data.draw(examples)
    facts = received_facts(case.weights, case.frame, {})
    n_heads, n_queries, n_keys = case.weights.shape
    for head in range(n_heads):
        for key in range(n_keys):
            column = case.weights[head, :, key]
            assert facts["received"][head, key] == pytest.approx(sum(column) / n_queries, abs=1e-6)
            later = sum(column[key:]) / (n_queries - key) if case.frame.is_self else np.nan
            assert facts["received_later"][head, key] == pytest.approx(later, abs=1e-6, nan_ok=True)
            for name, chosen in (("from_cls", case.frame.queries.cls), ("from_sep", case.frame.queries.sep)):
                mean = column[chosen].mean() if chosen.any() else np.nan
                assert facts[name][head, key] == pytest.approx(mean, abs=1e-6, nan_ok=True)


def test_the_rows_of_several_separators_are_averaged(map_x, axis_of):
    axis = axis_of("C S 0 S")
    facts = received_facts(map_x.weights, Frame(axis, axis), {})
    np.testing.assert_allclose(facts["from_sep"], [[0.55, 0.2, 0.15, 0.1]], rtol=1e-6)


def test_without_special_tokens_their_rows_have_no_value(axis_of):
    axis = axis_of("0")
    facts = received_facts(np.ones((2, 1, 1), np.float32), Frame(axis, axis, causal=True), {})
    assert facts["received"].tolist() == facts["received_later"].tolist() == [[1], [1]]
    assert np.isnan(facts["from_cls"]).all()
    assert np.isnan(facts["from_sep"]).all()


def test_a_cross_map_has_a_row_for_every_key(crossed):
    facts = received_facts(crossed.weights, crossed.frame, {})
    assert facts["token"].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(facts["received"], crossed.weights.mean(axis=1), rtol=1e-6)
    assert np.isnan(facts["received_later"]).all()


@pytest.mark.parametrize("causal", [False, True])
def test_blocks_of_rows_are_added_up(causal, random_map, axis_of, monkeypatch):
    weights, axis = random_map(3, 9, 9, causal=causal), axis_of("C 0 1 2 3 4 5 6 S")
    whole = received_facts(weights, Frame(axis, axis, causal), {})
    monkeypatch.setattr(blocks, "CELLS", 20)  # two rows at a time
    parts = received_facts(weights, Frame(axis, axis, causal), {})
    np.testing.assert_allclose(parts["received"], whole["received"], rtol=1e-6)
    np.testing.assert_allclose(parts["received_later"], whole["received_later"], rtol=1e-6)


def test_a_stack_of_layers_is_refused(map_x):
    with pytest.raises(BadInput, match=r"shape \[1, 1, 4, 4\]"):
        received_facts(map_x.weights[None], map_x.frame, {})
