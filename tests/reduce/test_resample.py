"""This file tests maps brought to one size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.resample import resample


def test_the_worked_example_at_two_by_two(map_x):
    quarters = [[0.25, 0.25], [0.325, 0.175]]
    np.testing.assert_allclose(resample(map_x.weights, 2), [quarters], atol=1e-15)


def test_cells_that_are_covered_in_part_count_in_part():
    # Each new row is one old row and half of the middle one: thirds (2/3, 1/3) and (1/3, 2/3).
    weights = np.arange(9.0).reshape(3, 3)
    shares = np.array([[2, 1, 0], [0, 1, 2]]) / 3
    np.testing.assert_allclose(resample(weights, 2), shares @ weights @ shares.T, rtol=1e-14)
    np.testing.assert_allclose(resample(weights, 2)[0, 0], (4 * 0 + 2 * 1 + 2 * 3 + 4) / 9)


@given(queries=st.integers(1, 9), keys=st.integers(1, 9), size=st.integers(1, 9))
def test_every_cell_is_the_mean_of_a_fine_grid(queries, keys, size):
    weights = np.random.default_rng(queries * 10 + keys).random((2, queries, keys))
    fine = weights.repeat(size, axis=1).repeat(size, axis=2)
    expected = fine.reshape(2, size, queries, size, keys).mean(axis=(2, 4))
    np.testing.assert_allclose(resample(weights, size), expected, rtol=1e-12)
    np.testing.assert_allclose(resample(weights, size).mean(axis=(1, 2)), weights.mean(axis=(1, 2)), rtol=1e-12)


def test_a_map_of_its_own_size_stays_and_leading_axes_are_carried_along(random_map):
    weights = random_map(6, 5, 5).reshape(2, 3, 5, 5)
    np.testing.assert_array_equal(resample(weights, 5), weights)
    assert resample(weights, 3).shape == (2, 3, 3, 3)
    np.testing.assert_allclose(resample(weights[1, 2], 3), resample(weights, 3)[1, 2], rtol=1e-6)


def test_half_precision_maps_are_averaged_in_single():
    resampled = resample(np.full((512, 512), 0.1, np.float16), 1)
    assert resampled.dtype == np.float32
    assert resampled.item() == pytest.approx(float(np.float16(0.1)), rel=1e-5)


@pytest.mark.parametrize(("shape", "size"), [((4, 4), 0), ((4,), 2), ((0, 4), 2)])
def test_what_has_no_area_is_refused(shape, size):
    with pytest.raises(BadInput, match=r"expected \[\.\.\., query, key\] and size >= 1"):
        resample(np.ones(shape), size)
