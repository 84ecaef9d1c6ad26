"""This file tests the sums over the rows of each head."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.format.tables import HEAD_FACTS
from attnstore.reduce.axes import Axis, Frame
from attnstore.reduce.head_facts import head_facts


def plain_entropy(row):
    return -sum(weight * math.log(weight) for weight in row if weight > 0)


def plain_head_facts(weights, frame, eps, drop):
    """The facts of one head [query, key] by their definitions, one row at a time."""
    queries, keys = frame.queries, frame.keys
    n_queries, n_keys = weights.shape
    dropped_q, dropped_k = (axis.sep if drop == "sep" else axis.special for axis in (queries, keys))
    facts = dict.fromkeys(HEAD_FACTS.names[4:], 0.0)
    facts |= {"n_queries": n_queries, "n_keys": n_keys, "n_cls": sum(queries.cls), "n_sep": sum(queries.sep)}
    for query, row in enumerate(weights):
        visible = query + 1 if frame.causal else n_keys
        smooth = plain_entropy([(1 - eps) * weight + eps / visible for weight in row[:visible]])
        exact = plain_entropy(row)
        to_sep = sum(row[keys.sep])
        kept = [weight for weight, dropped in zip(row, dropped_k, strict=True) if not dropped]
        top = max(kept, default=0)
        facts["cls_sum"] += sum(row[keys.cls])
        facts["sep_sum"] += to_sep
        facts["punct_sum"] += sum(row[keys.punct])
        facts["sep_sep_sum" if queries.sep[query] else "rest_sep_sum"] += to_sep
        facts["entropy_sum"] += smooth
        facts["entropy_exact_sum"] += exact
        facts["log_keys_sum"] += math.log(visible)
        if visible > 1:
            facts["entropy_normalised_sum"] += exact / math.log(visible)
            facts["n_normalised"] += 1
        if queries.cls[query]:
            facts["cls_entropy_sum"] += smooth
            facts["cls_entropy_exact_sum"] += exact
        facts["max_sum"] += max(row)
        facts["max_drop_keys_sum"] += top
        facts["max_drop_renormalised_sum"] += top / sum(kept) if top > 0 else 0
        if not dropped_q[query]:
            facts["max_drop_both_sum"] += top
            facts["n_drop_both"] += 1
        if frame.is_self:
            facts["self_sum"] += row[query]
            facts["next_sum"] += row[query + 1] if query + 1 < n_keys else 0
            facts["previous_sum"] += row[query - 1] if query > 0 else 0
            facts["distance_sum"] += sum(abs(query - key) * weight for key, weight in enumerate(row))
    if not frame.is_self:
        facts |= dict.fromkeys(("self_sum", "next_sum", "previous_sum", "distance_sum"), math.nan)
    return facts


@pytest.fixture(scope="module")
def facts_x(map_x):
    """The facts of the worked example (4 queries, one [CLS], one [SEP]) as plain numbers."""
    return {name: values.item() for name, values in head_facts(map_x.weights, map_x.frame).items()}


def test_fixture_self(facts_x):
    assert facts_x["self_sum"] / 4 == pytest.approx(0.1875, abs=1e-12)


def test_fixture_next(facts_x):
    assert facts_x["next_sum"] / 4 == pytest.approx(0.1625, abs=1e-12)
    assert facts_x["next_sum"] / (facts_x["n_queries"] - 1) == pytest.approx(0.216667, abs=5e-7)


def test_fixture_previous(facts_x):
    assert facts_x["previous_sum"] / 4 == pytest.approx(0.1875, abs=1e-12)
    assert facts_x["previous_sum"] / (facts_x["n_queries"] - 1) == pytest.approx(0.25, abs=1e-12)


def test_fixture_cls_and_sep(facts_x):
    assert facts_x["cls_sum"] / 4 == pytest.approx(0.3625, abs=1e-12)
    assert facts_x["sep_sum"] / 4 == pytest.approx(0.2125, abs=1e-12)


def test_fixture_sep_sep(facts_x):
    assert facts_x["sep_sep_sum"] / 2 == pytest.approx(0.05, abs=1e-12)
    assert facts_x["sep_sep_sum"] / facts_x["n_sep"] == pytest.approx(0.1, abs=1e-12)


def test_fixture_rest_sep(facts_x):
    assert facts_x["rest_sep_sum"] / 2 == pytest.approx(0.375, abs=1e-12)
    assert facts_x["rest_sep_sum"] / (facts_x["n_queries"] - facts_x["n_sep"]) == pytest.approx(0.25, abs=1e-12)


def test_fixture_entropy(facts_x):
    assert facts_x["entropy_sum"] / 4 == pytest.approx(1.2216460, abs=5e-8)
    assert facts_x["cls_entropy_sum"] / facts_x["n_cls"] == pytest.approx(1.2798770, abs=5e-8)


def test_fixture_confidence(facts_x):
    assert facts_x["max_sum"] / 4 == pytest.approx(0.4375, abs=1e-12)
    assert facts_x["max_drop_keys_sum"] / 4 == pytest.approx(0.4125, abs=1e-12)
    assert facts_x["max_drop_both_sum"] / facts_x["n_drop_both"] == pytest.approx(0.3166667, abs=5e-8)
    assert facts_x["max_drop_renormalised_sum"] / 4 == pytest.approx(0.5138889, abs=5e-8)


def test_fixture_token_distance(facts_x):
    assert facts_x["distance_sum"] == pytest.approx(1.55 * 4, abs=1e-12)


@pytest.mark.parametrize(("n_tokens", "entropy"), [(4, 0.00086974), (128, 0.00149446)])
def test_fixture_entropy_of_one_hot_rows(n_tokens, entropy, axis_of):
    axis = axis_of(" ".join(map(str, range(n_tokens))))
    for dtype, tolerance in ((np.float64, 5e-9), (np.float32, 5e-8)):
        facts = head_facts(np.eye(n_tokens, dtype=dtype)[None], Frame(axis, axis))
        assert facts["entropy_sum"].item() / n_tokens == pytest.approx(entropy, abs=tolerance)
        assert facts["entropy_exact_sum"].item() == 0


@pytest.mark.parametrize("n_tokens", [1, 2, 4, 127, 128])
def test_fixture_entropy_of_uniform_rows_is_the_logarithm_of_their_length(n_tokens, axis_of):
    axis = axis_of(" ".join(map(str, range(n_tokens))))
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 5e-7)):
        facts = head_facts(np.full((1, n_tokens, n_tokens), 1 / n_tokens, dtype), Frame(axis, axis))
        for name in ("entropy_sum", "entropy_exact_sum"):
            assert facts[name].item() / n_tokens == pytest.approx(math.log(n_tokens), rel=tolerance, abs=tolerance)
        assert facts["log_keys_sum"].item() == pytest.approx(n_tokens * math.log(n_tokens), rel=1e-14)


def test_dropping_every_special_token_leaves_cls_out_too(map_x):
    facts = head_facts(map_x.weights, map_x.frame, drop="special")
    # Columns a and b: maxima .3 .3 .25 .1; rows a and b: .3 + .25; renormalised .3/.5 + .3/.5 + 1/2 + 1/2.
    assert facts["max_drop_keys_sum"].item() == pytest.approx(0.95)
    assert facts["max_drop_both_sum"].item() == pytest.approx(0.55)
    assert facts["n_drop_both"].item() == 2
    assert facts["max_drop_renormalised_sum"].item() == pytest.approx(2.2)


def test_a_causal_map_by_hand(axis_of):
    axis = axis_of("C 0 .1")
    weights = np.array([[[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]]])
    facts = {name: values.item() for name, values in head_facts(weights, Frame(axis, axis, causal=True)).items()}
    # Row 0 sees one key, rows 1 and 2 see 2 and 3: entropies 0, ln 2, 1.5 ln 2.
    assert facts["entropy_exact_sum"] == pytest.approx(2.5 * math.log(2), rel=1e-14)
    assert facts["n_normalised"] == 2
    assert facts["entropy_normalised_sum"] == pytest.approx(1 + 1.5 * math.log(2) / math.log(3), rel=1e-14)
    assert facts["log_keys_sum"] == pytest.approx(math.log(6), rel=1e-14)
    # Smoothing leaves rows 0 and 1 as they are, since they are uniform over what they see.
    last = [0.9999 * weight + 1e-4 / 3 for weight in (0.25, 0.25, 0.5)]
    assert facts["entropy_sum"] == pytest.approx(math.log(2) + plain_entropy(last), rel=1e-12)
    assert facts["next_sum"] == 0
    assert facts["previous_sum"] == pytest.approx(0.75)
    assert facts["punct_sum"] == pytest.approx(0.5)


def test_cross_maps_have_no_offsets(axis_of):
    frame = Frame(axis_of("C 0 S"), axis_of("C 0 1 S"))
    weights = np.full((2, 3, 4), 0.25, np.float32)
    facts = head_facts(weights, frame)
    for name in ("self_sum", "next_sum", "previous_sum", "distance_sum"):
        assert np.isnan(facts[name]).all()
    assert facts["n_queries"].tolist() == [3, 3]
    assert facts["n_keys"].tolist() == [4, 4]
    assert facts["sep_sum"].tolist() == [0.75, 0.75]


def test_a_row_without_weight_on_kept_keys_counts_nothing(axis_of):
    axis = axis_of("C S", n_words=0)
    facts = head_facts(np.array([[[0.0, 1.0], [0.5, 0.5]]]), Frame(axis, axis))
    assert facts["max_drop_renormalised_sum"].item() == 1
    facts = head_facts(np.array([[[0.0, 1.0], [0.5, 0.5]]]), Frame(axis, axis), drop="special")
    assert facts["max_drop_renormalised_sum"].item() == 0


def test_columns_and_types_are_those_of_the_table(map_x):
    facts = head_facts(np.concatenate([map_x.weights] * 3), map_x.frame)
    assert list(facts) == [name for name in HEAD_FACTS.names if name not in ("example", "kind", "layer", "head")]
    assert {(column.dtype, column.shape) for column in facts.values()} == {(np.dtype(np.float64), (3,))}


@given(data=st.data(), drop=st.sampled_from(["sep", "special"]), eps=st.sampled_from([0, 1e-4, 1e-3, 0.3]))
def test_facts_are_what_their_definitions_say(data, drop, eps, examples):
    case = data.draw(examples)
    facts = head_facts(case.weights, case.frame, eps=eps, drop=drop)
    for head, weights in enumerate(case.weights):
        for name, expected in plain_head_facts(weights, case.frame, eps, drop).items():
            np.testing.assert_allclose(facts[name][head], expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("causal", [False, True])
def test_single_precision_is_good_to_six_digits(causal, random_map, axis_of):
    weights = random_map(3, 100, 100, causal=causal)
    axis = axis_of("C " + " ".join(f".{word}" if word % 9 == 8 else str(word) for word in range(98)) + " S")
    facts = head_facts(weights, Frame(axis, axis, causal))
    for head in range(3):
        expected = plain_head_facts(weights[head].astype(np.float64), Frame(axis, axis, causal), 1e-4, "sep")
        for name in expected:
            np.testing.assert_allclose(facts[name][head], expected[name], rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("causal", [False, True])
def test_long_maps_are_the_same_in_blocks(causal, random_map, axis_of):
    # 2 * 600 * 600 weights are four blocks of 2^18; in double precision the blocks are the only difference.
    weights = random_map(2, 600, 600, causal=causal).astype(np.float64)
    axis = axis_of("C " + " ".join(map(str, range(598))) + " S")
    frame = Frame(axis, axis, causal)
    facts = head_facts(weights, frame)
    for head in range(2):
        for name, expected in plain_head_facts(weights[head], frame, 1e-4, "sep").items():
            np.testing.assert_allclose(facts[name][head], expected, rtol=1e-11, err_msg=name)


@given(data=st.data())
def test_reversing_token_order_swaps_next_and_previous(data, bidirectional_examples):
    case = data.draw(bidirectional_examples)
    axis = case.frame.queries
    backwards = Axis(
        axis.special[::-1], axis.cls[::-1], axis.sep[::-1], axis.punct[::-1], axis.word[::-1], axis.n_words
    )
    facts = head_facts(case.weights, case.frame)
    mirrored = head_facts(case.weights[:, ::-1, ::-1], Frame(backwards, backwards))
    swapped = {"next_sum": "previous_sum", "previous_sum": "next_sum"}
    for name, values in facts.items():
        np.testing.assert_allclose(mirrored[swapped.get(name, name)], values, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1])
def test_a_weight_that_is_no_weight_is_refused_with_its_place(bad, map_x):
    weights = np.concatenate([map_x.weights, map_x.weights])
    weights[1, 2, 3] = bad
    with pytest.raises(BadInput, match="in head 1, query 2"):
        head_facts(weights, map_x.frame)


def test_parameters_outside_their_range_are_refused(map_x):
    with pytest.raises(BadInput, match="drop = 'cls'; expected 'sep' or 'special'"):
        head_facts(map_x.weights, map_x.frame, drop="cls")
    for eps in (-1e-9, 1, math.nan):
        with pytest.raises(BadInput, match="0 <= eps < 1"):
            head_facts(map_x.weights, map_x.frame, eps=eps)
