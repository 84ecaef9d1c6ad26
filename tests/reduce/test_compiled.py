"""Compiled loops give what NumPy gives: to the bit where nothing is added up, within float32's rounding elsewhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.axes import Frame
from attnstore.reduce.facts import facts
from attnstore.reduce.rows import STATISTICS, row_statistics
from tests.reduce.conftest import build_axis

pytest.importorskip("numba")

ROUNDED = {"entropy", "smoothed", "distance", "cls", "sep", "punct", "kept", "renormalised"}


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data(), drop=st.sampled_from(["sep", "special"]), eps=st.sampled_from([1e-4, 0.0]))
def test_the_facts_of_both_ways_agree(data, drop, eps, examples):
    case = data.draw(examples)
    weights = case.weights.astype(np.float32)
    plain = facts(weights, case.frame, drop=drop, eps=eps)
    compiled = facts(weights, case.frame, drop=drop, eps=eps, compiled=True)
    for name in ("argmax", "max"):
        np.testing.assert_array_equal(compiled.tokens[name], plain.tokens[name], err_msg=name)
    np.testing.assert_allclose(compiled.tokens["entropy_nats"], plain.tokens["entropy_nats"], rtol=0, atol=2e-6)
    longest = max(np.bincount(axis.word + 1)[1:].max(initial=0) for axis in (case.frame.queries, case.frame.keys))
    for name, values in plain.words.items():
        if longest <= 8:
            np.testing.assert_array_equal(compiled.words[name], values, err_msg=name)
        elif name.endswith("weight"):  # NumPy adds up longer words in another order
            np.testing.assert_allclose(compiled.words[name], values, rtol=1e-6, atol=1e-7, err_msg=name)
    for name, values in plain.heads.items():
        np.testing.assert_allclose(compiled.heads[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("causal", [False, True])
def test_statistics_of_rows_agree_over_many_rows(causal: bool) -> None:
    random = np.random.default_rng(3)
    weights = random.random((6, 97, 97), np.float32) ** 12  # from 1e-30 on
    if causal:
        weights = np.tril(weights)
        weights[:, np.arange(97), np.arange(97)] += 1e-3
    weights /= weights.sum(-1, keepdims=True)
    axis = build_axis(" ".join(["C", *(str(word // 2) for word in range(60)), ".30", *["31"] * 34, "S"]))
    plain, compiled = (
        row_statistics(weights, Frame(axis, axis, causal), eps=1e-4, drop="sep", compiled=way) for way in (False, True)
    )
    np.testing.assert_array_equal(compiled.argmax, plain.argmax)
    for name in STATISTICS:
        if name in ROUNDED:
            np.testing.assert_allclose(compiled.named(name), plain.named(name), rtol=2e-6, atol=2e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(compiled.named(name), plain.named(name), err_msg=name)
    # Neither way is the nearer one to float64 by more than float32's own steps.
    exact = row_statistics(weights.astype(np.float64), Frame(axis, axis, causal), eps=1e-4, drop="sep")
    assert np.abs(compiled.named("entropy") - exact.named("entropy")).max() < 2e-6


@pytest.mark.parametrize("wrong", [np.nan, -0.25, np.inf])
def test_what_is_no_weight_is_refused_by_both_ways(wrong: float) -> None:
    axis = build_axis("C 0 1 S")
    weights = np.full((2, 4, 4), 0.25, np.float32)
    weights[1, 2, 3] = wrong
    for way in (False, True):
        with pytest.raises(BadInput, match="head 1, query 2"):
            facts(weights, Frame(axis, axis), compiled=way)


def test_a_weight_of_minus_zero_is_a_weight_of_zero() -> None:
    axis = build_axis("C 0 1 S")
    weights = np.full((1, 4, 4), 1 / 3, np.float32)
    weights[..., 1] = -0.0
    plain, compiled = (facts(weights, Frame(axis, axis), compiled=way) for way in (False, True))
    np.testing.assert_array_equal(compiled.tokens["argmax"], plain.tokens["argmax"])
    np.testing.assert_allclose(compiled.tokens["entropy_nats"], np.log(3), rtol=1e-6)


def test_a_cross_map_has_no_distances_and_nothing_is_left_out_as_diagonal() -> None:
    queries, keys = build_axis("C 0 1 S"), build_axis("C 0 0 1 2 S")
    weights = np.random.default_rng(0).dirichlet(np.ones(6), (3, 4)).astype(np.float32)
    plain, compiled = (facts(weights, Frame(queries, keys), compiled=way) for way in (False, True))
    for name, values in plain.words.items():
        np.testing.assert_array_equal(compiled.words[name], values, err_msg=name)
    assert np.isnan(compiled.heads["distance_sum"]).all()
    np.testing.assert_allclose(compiled.heads["cls_sum"], plain.heads["cls_sum"], rtol=1e-6)
