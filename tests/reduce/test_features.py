"""This file tests the attention that chosen tokens receive."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.features import feature_attention


def test_fixture_k4_with_the_feature_on_a_and_b(map_x):
    # Column means .3625 .2125 .2125 .2125.
    assert feature_attention(map_x.weights, [1, 2]).tolist() == pytest.approx([0.2125], abs=1e-12)


def test_the_largest_column_mean_counts_and_booleans_choose_too(map_x):
    assert feature_attention(map_x.weights, [0, 2]).item() == pytest.approx(0.3625)
    assert feature_attention(map_x.weights, np.array([True, False, True, False])).item() == pytest.approx(0.3625)


def test_queries_narrow_the_mean_to_the_row_of_cls(map_x):
    # Row [CLS] is .1 .2 .3 .4.
    assert feature_attention(map_x.weights, [1, 2], queries=[0]).item() == pytest.approx(0.3)


def test_an_example_without_the_feature_has_no_value(map_x):
    assert np.isnan(feature_attention(map_x.weights, [])).all()
    assert np.isnan(feature_attention(map_x.weights, np.zeros(4, bool))).all()
    assert np.isnan(feature_attention(map_x.weights, [1], queries=[])).all()


def test_leading_axes_are_carried_along(random_map):
    weights = random_map(6, 5, 5).reshape(2, 3, 5, 5)
    received = feature_attention(weights, [4, 1])
    assert received.shape == (2, 3)
    assert received[1, 2] == pytest.approx(weights[1, 2].astype(np.float64).mean(axis=0)[[1, 4]].max())


@pytest.mark.parametrize("columns", [[4], [-1], [0.5], [[1]], [True], ["1"]])
def test_positions_that_are_none_are_refused(columns, map_x):
    with pytest.raises(BadInput, match=r"columns = .*; expected positions from 0 to 3, or 4 booleans"):
        feature_attention(map_x.weights, columns)
