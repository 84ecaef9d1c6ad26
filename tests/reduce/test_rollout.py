"""This file tests attention followed through layers."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.rollout import rollout

LAYERS = np.array([[[0.6, 0.4], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]])


def test_fixture_rollout_of_two_layers_with_half_identity():
    np.testing.assert_allclose(rollout(LAYERS), [[0.625, 0.375], [0.415, 0.585]], atol=1e-12)


def test_without_residual_it_is_the_product_with_later_layers_on_the_left():
    np.testing.assert_allclose(rollout(LAYERS, residual=0), LAYERS[1] @ LAYERS[0], atol=1e-12)


def test_with_nothing_but_residual_every_token_stays():
    np.testing.assert_array_equal(rollout(LAYERS, residual=1), np.eye(2))


def test_rows_keep_their_sums(random_map):
    reached = rollout(random_map(12, 20, 20))
    assert reached.dtype == np.float64
    np.testing.assert_allclose(reached.sum(axis=1), 1, rtol=1e-5)


def test_maps_that_cannot_be_chained_are_refused():
    with pytest.raises(BadInput, match=r"maps of shape \[2, 2, 3\]"):
        rollout(np.ones((2, 2, 3)))
    with pytest.raises(BadInput, match=r"residual = 1\.5"):
        rollout(LAYERS, residual=1.5)
