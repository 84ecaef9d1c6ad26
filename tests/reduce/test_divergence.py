"""This file tests distances between maps."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.divergence import cosine, jensen_shannon, jensen_shannon_between, total_variation


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
    weights = random_map(1, 30, 30) * (1 + np.random.default_rng(1).normal(size=(20, 30, 30)) * 1e-7)
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
