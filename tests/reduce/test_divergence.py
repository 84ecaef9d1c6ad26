"""This file tests distances between maps."""

import math
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import compiled, divergence
from attnstore.reduce.divergence import (
    condensed,
    cosine,
    jensen_shannon,
    jensen_shannon_between,
    sampled_rows,
    total_variation,
)

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba, an optional package, is not installed")
WAYS = [False, pytest.param(True, marks=needs_numba)]


def plain_jensen_shannon(a, b, eps):
    """The definition of Clark et al. 2019, section 6: three logarithms per cell."""
    p, q = ((1 - eps) * weights + eps / weights.shape[-1] for weights in (a, b))
    middle = (p + q) / 2
    return (p * np.log(p / middle) + q * np.log(q / middle)).sum() / 2


def test_fixture_identity_against_identity_shifted_by_one():
    between = jensen_shannon(np.stack([np.eye(4), np.roll(np.eye(4), 1, axis=1)]))
    assert between[0, 1] == pytest.approx(2.7619090, abs=5e-8)
    assert between[0, 1] / 4 == pytest.approx(0.6904773, abs=5e-8)
    assert between[0, 1] / 4 < math.log(2)


def test_fixture_identity_against_uniform():
    assert jensen_shannon(np.stack([np.eye(4), np.full((4, 4), 0.25)]))[0, 1] == pytest.approx(1.5100551, abs=5e-8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fixture_a_map_against_itself_is_exactly_zero(dtype, random_map):
    weights = random_map(1, 30, 30).astype(dtype)
    np.testing.assert_array_equal(jensen_shannon(np.concatenate([weights] * 3)), np.zeros((3, 3)))
    assert jensen_shannon_between(weights, weights).tolist() == [0]


def test_fixture_cosine_of_the_worked_example_with_its_transpose(map_x):
    # 1.2125 / 1.37, the sum of a * b over the sum of squares, which the two maps share.
    found = cosine(map_x.weights, map_x.weights.swapaxes(1, 2)).item()
    assert found == pytest.approx(0.8850364, abs=1e-7)
    assert found == pytest.approx(1.2125 / 1.37, abs=1e-14)


@given(data=st.data(), eps=st.sampled_from([1e-4, 1e-3, 0.1]))
def test_divergence_is_symmetric_bounded_and_what_its_definition_says(data, eps, examples):
    weights = data.draw(examples).weights
    between = jensen_shannon(weights, eps=eps)
    assert between.dtype == np.float64
    np.testing.assert_array_equal(between, between.T)
    assert (between >= 0).all()
    assert (between <= weights.shape[1] * math.log(2)).all()
    for a in range(len(weights)):
        for b in range(len(weights)):
            assert between[a, b] == pytest.approx(plain_jensen_shannon(weights[a], weights[b], eps), abs=1e-12)


@given(data=st.data())
def test_permuting_heads_permutes_the_divergences(data, examples):
    weights = data.draw(examples).weights
    order = data.draw(st.permutations(range(len(weights))))
    shuffled = jensen_shannon(weights[order])
    np.testing.assert_allclose(shuffled, jensen_shannon(weights)[np.ix_(order, order)], atol=1e-13)


def test_divergence_without_smoothing_reaches_its_bound():
    between = jensen_shannon(np.stack([np.eye(4), np.roll(np.eye(4), 1, axis=1)]), eps=0)
    assert between[0, 1] == pytest.approx(4 * math.log(2), abs=1e-12)


def test_rounding_makes_no_divergence_negative(random_map):
    # Heads that differ in the last digit: their true divergence is far below what single precision resolves.
    weights = random_map(1, 70, 70) * (1 + np.random.default_rng(1).normal(size=(20, 70, 70)) * 1e-7)
    for precise in (weights.astype(np.float32), weights):
        between = jensen_shannon(precise)
        assert (between >= 0).all()
        assert between.max() < 1e-4
    assert (jensen_shannon_between(weights.astype(np.float32)[1:], weights.astype(np.float32)[:-1]) >= 0).all()


def test_many_heads_are_the_same_in_blocks(random_map):
    # 20 heads of 150 by 150 are two blocks of 2^18 weights.
    weights = random_map(20, 150, 150)
    between = jensen_shannon(weights)
    wide = weights.astype(np.float64)
    for a, b in ((0, 1), (3, 19), (18, 19)):
        expected = plain_jensen_shannon(wide[a], wide[b], 1e-3)
        assert between[a, b] == pytest.approx(expected, rel=2e-6)
        assert jensen_shannon_between(weights[a], weights[b]) * 150 == pytest.approx(expected, rel=2e-6)


@given(data=st.data())
def test_two_models_are_compared_head_by_head(data, examples):
    a = data.draw(examples).weights
    b = np.roll(a, 1, axis=-1)
    js, tv, angle = jensen_shannon_between(a, b), total_variation(a, b), cosine(a, b)
    assert js.shape == tv.shape == angle.shape == a.shape[:1]
    for head in range(len(a)):
        assert js[head] * a.shape[1] == pytest.approx(plain_jensen_shannon(a[head], b[head], 1e-3), abs=1e-12)
        assert tv[head] == pytest.approx(np.abs(a[head] - b[head]).sum() / 2 / a.shape[1], abs=1e-12)
        inner = (a[head] * b[head]).sum()
        assert angle[head] == pytest.approx(inner / np.linalg.norm(a[head]) / np.linalg.norm(b[head]), abs=1e-12)


def test_total_variation_by_hand(map_x):
    # Against uniform rows: |-.15| + |-.05| + .05 + .15 = .4, .4, 0, .45 + 3 * .15 = .9; half of 1.7 over 4 rows.
    assert total_variation(map_x.weights, np.full((1, 4, 4), 0.25)).item() == pytest.approx(0.2125, abs=1e-12)


def test_leading_axes_are_carried_along(random_map):
    a, b = random_map(6, 9, 9).reshape(2, 3, 9, 9), random_map(6, 9, 9, seed=1).reshape(2, 3, 9, 9)
    for compare in (cosine, total_variation, jensen_shannon_between):
        assert compare(a, b).shape == (2, 3)
        assert compare(a, b)[1, 2] == pytest.approx(float(compare(a[1, 2], b[1, 2])), rel=1e-6)


def test_the_cosine_of_an_empty_map_is_not_a_number():
    assert np.isnan(cosine(np.zeros((1, 2, 2)), np.eye(2)[None])).all()


def test_maps_of_different_shape_are_refused():
    for compare in (cosine, total_variation, jensen_shannon_between):
        with pytest.raises(BadInput, match=r"shapes \[1, 2, 2\] and \[1, 3, 3\]"):
            compare(np.ones((1, 2, 2)), np.ones((1, 3, 3)))
    with pytest.raises(BadInput, match=r"\[head, query, key\]"):
        jensen_shannon(np.eye(3))
    with pytest.raises(BadInput, match="eps"):
        jensen_shannon(np.eye(3)[None], eps=2)


def peaked_maps(n_heads, n_queries, n_keys, seed=0):
    """Maps in half precision, some nearly uniform and some with most weight on one key of each row, as float32."""
    random = np.random.default_rng(seed)
    weights = np.exp(random.normal(size=(n_heads, n_queries, n_keys)) * random.uniform(0.1, 6, (n_heads, 1, 1)))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(24, 70, 70), (3, 1, 1), (5, 3, 40), (2, 7, 2100)])
def test_weights_in_single_precision_cost_a_millionth_of_the_mean_at_most(way, shape):
    # 70 by 70 and 7 by 2100 are several blocks of cells, the last of them short; the others are few cells.
    weights = peaked_maps(*shape)
    wide = weights.astype(np.float64)
    expected = np.array([[plain_jensen_shannon(a, b, 1e-3) for b in wide] for a in wide])
    between = jensen_shannon(weights, compiled=way)
    np.testing.assert_array_equal(between, between.T)
    np.testing.assert_allclose(between, expected, rtol=0, atol=1e-6 * expected.mean())


@needs_numba
@pytest.mark.parametrize("eps", [0, 1e-4, 0.1])
def test_numba_agrees_with_numpy(eps):
    # Rows with all weight on one key; and maps whose axes do not lie in memory in their order.
    sharp = np.stack([np.roll(np.eye(70, dtype=np.float16), shift, axis=1) for shift in range(8)])
    peaked = peaked_maps(30, 70, 70)
    for weights in (peaked, sharp, np.asfortranarray(peaked)):
        reference = jensen_shannon(weights, eps=eps, compiled=False)
        found = jensen_shannon(weights, eps=eps, compiled=True)
        np.testing.assert_allclose(found, reference, rtol=0, atol=1e-6 * reference.mean())


@needs_numba
def test_equal_maps_are_exactly_zero_apart_with_numba(random_map):
    weights = np.concatenate([random_map(1, 70, 70)] * 3).astype(np.float32)
    np.testing.assert_array_equal(jensen_shannon(weights, compiled=True), np.zeros((3, 3)))


@needs_numba
def test_a_weight_that_is_not_a_number_stays_one_with_numba():
    weights = peaked_maps(3, 70, 70)
    weights[1, 4, 4] = np.nan
    assert np.isnan(jensen_shannon(weights, compiled=True)).tolist() == [
        [False, True, False],
        [True, False, True],
        [False, True, False],
    ]


def test_the_polynomial_is_a_logarithm_to_the_digits_of_single_precision():
    f = np.linspace(math.sqrt(0.5), math.sqrt(2), 100_001) - 1
    assert np.abs(f * np.polynomial.Polynomial(compiled.LN)(f) - np.log1p(f)).max() < 3.5e-8


def test_without_numba_numpy_does_the_work(monkeypatch):
    weights = peaked_maps(4, 70, 70)
    monkeypatch.setattr(compiled, "find_spec", lambda name: None)
    compiled.compiled_pair_sums.cache_clear()
    try:
        np.testing.assert_array_equal(jensen_shannon(weights, compiled=True), jensen_shannon(weights, compiled=False))
    finally:
        compiled.compiled_pair_sums.cache_clear()


def test_few_cells_are_added_up_in_double_precision():
    weights = peaked_maps(4, 64, 64)
    np.testing.assert_array_equal(jensen_shannon(weights), jensen_shannon(weights.astype(np.float64)))
    weights = peaked_maps(4, 65, 64)
    assert (jensen_shannon(weights) != jensen_shannon(weights.astype(np.float64))).any()


def test_double_precision_is_never_handed_to_numba():
    weights = peaked_maps(4, 70, 70).astype(np.float64)
    np.testing.assert_array_equal(jensen_shannon(weights, compiled=True), jensen_shannon(weights, compiled=False))


def test_numba_is_used_unasked_only_where_there_is_much_to_do(monkeypatch):
    used = []
    monkeypatch.setattr(divergence, "compiled_pair_sums", lambda: used.append(1))
    weights = peaked_maps(4, 70, 70)  # 10 pairs with those of a head with itself, 4900 cells
    jensen_shannon(weights)
    monkeypatch.setattr(divergence, "COMPILED_FROM", 49_001)
    jensen_shannon(weights)
    assert used == []
    monkeypatch.setattr(divergence, "COMPILED_FROM", 49_000)
    jensen_shannon(weights)
    assert used == [1]
    jensen_shannon(weights, compiled=False)
    assert used == [1]


def test_a_small_divergence_does_not_load_numba():
    code = (
        "import sys, numpy as np; from attnstore.reduce.divergence import jensen_shannon;"
        "jensen_shannon(np.full((9, 70, 70), 0.02, np.float32)); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("logarithm", [(np.log, 1.0), (np.log2, math.log(2))])
def test_the_logarithm_that_a_processor_is_quick_at_does_not_change_the_answer(logarithm, monkeypatch):
    monkeypatch.setattr(divergence, "_fastest_logarithm", lambda: logarithm)
    test_weights_in_single_precision_cost_a_millionth_of_the_mean_at_most(False, (6, 70, 70))


@given(data=st.data())
def test_sampled_rows_count_as_if_the_map_had_no_others(data, examples):
    weights = data.draw(examples).weights
    n_queries = weights.shape[1]
    rows = np.array(data.draw(st.lists(st.integers(0, n_queries - 1), unique=True)), np.int32)
    between = jensen_shannon(weights, rows=rows)
    for a in range(len(weights)):
        for b in range(len(weights)):
            expected = plain_jensen_shannon(weights[a, rows], weights[b, rows], 1e-3)
            assert between[a, b] == pytest.approx(expected, abs=1e-12)


def test_all_rows_sampled_are_the_whole_map():
    weights = peaked_maps(5, 12, 12)
    np.testing.assert_array_equal(jensen_shannon(weights, rows=sampled_rows(12, 0)), jensen_shannon(weights))


def test_sampled_rows_are_the_middles_of_equal_parts():
    assert sampled_rows(10, 2).tolist() == [2, 7]
    assert sampled_rows(7, 3).tolist() == [1, 3, 5]
    assert sampled_rows(9, 1).tolist() == [4]
    for rows in (0, 5, 6, 100):
        assert sampled_rows(5, rows).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BadInput, match="rows = -1"):
        sampled_rows(5, -1)


@given(n_queries=st.integers(1, 5000), rows=st.integers(1, 5000))
def test_each_equal_part_gives_one_row(n_queries, rows):
    index = sampled_rows(n_queries, rows)
    parts = min(rows, n_queries)
    # Row i covers [i, i + 1): it holds the middle of its part.
    middles = (np.arange(parts) + 0.5) * n_queries / parts
    assert ((index <= middles) & (middles < index + 1)).all()


def test_rows_that_are_not_there_are_refused():
    for rows in ([0, 4], [-1], [[0, 1]]):
        with pytest.raises(BadInput, match=r"from 0 to 3"):
            jensen_shannon(np.eye(4)[None], rows=np.array(rows))


def test_the_condensed_form_goes_through_the_upper_triangle_row_by_row():
    matrix = np.array([[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0.0]])
    assert condensed(matrix).tolist() == [1, 2, 3, 4, 5, 6]
    assert condensed(np.zeros((1, 1))).tolist() == []


def test_a_store_without_heads_has_no_pairs():
    assert jensen_shannon(np.zeros((0, 3, 3))).shape == (0, 0)
