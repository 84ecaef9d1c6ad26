"""This file tests the patterns that maps are compared with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce.patterns import duplicate_pattern, grid_distance, induction_pattern


def edges(pattern):
    return [(int(query), int(key)) for query, key in np.argwhere(pattern)]


def test_fixture_duplicate_and_induction_of_9_5_6_5_6():
    assert edges(duplicate_pattern([9, 5, 6, 5, 6])) == [(3, 1), (4, 2)]
    assert edges(induction_pattern([9, 5, 6, 5, 6])) == [(3, 2), (4, 3)]


def test_fixture_adjacent_duplicates_9_5_5_give_no_self_edge():
    assert edges(duplicate_pattern([9, 5, 5])) == [(2, 1)]
    assert edges(induction_pattern([9, 5, 5])) == []


@given(ids=st.lists(st.integers(0, 3), max_size=10))
def test_patterns_are_what_their_definitions_say(ids):
    pairs = [(query, key) for query in range(len(ids)) for key in range(query)]
    assert edges(duplicate_pattern(ids)) == [(query, key) for query, key in pairs if ids[key] == ids[query]]
    after = [(query, key) for query, key in pairs if key > 0 and ids[key - 1] == ids[query]]
    assert edges(induction_pattern(ids)) == after


def test_a_batch_of_ids_is_refused():
    with pytest.raises(BadInput, match=r"ids of shape \[1, 2\]"):
        induction_pattern([[1, 2]])


def test_fixture_grid_distance_of_uniform_attention_over_2_by_2_patches():
    uniform = np.full((1, 5, 5), 0.2)
    assert grid_distance(uniform, 2, 2, patch=16).item() == pytest.approx(10.9254834, abs=5e-8)
    assert grid_distance(uniform, 2, 2, patch=16, renormalise=True).item() == pytest.approx(13.6568542, abs=5e-8)


def test_grids_that_are_not_square_are_counted_row_by_row():
    # 2 rows of 3 patches without prefix; every patch looks at patch 2, the last of the first row:
    # 2, 1, 0 steps away from the first row, and (1, 2), (1, 1), (1, 0) from the second.
    weights = np.zeros((6, 6))
    weights[:, 2] = 1
    expected = (2 + 1 + 0 + 5**0.5 + 2**0.5 + 1) / 6
    assert float(grid_distance(weights, 2, 3, patch=1, prefix=0)) == pytest.approx(expected, abs=1e-12)


def test_patches_that_look_at_the_prefix_alone_are_at_no_distance():
    weights = np.zeros((2, 3, 3))
    weights[:, :, 0] = 1
    assert grid_distance(weights, 1, 2, patch=16, renormalise=True).tolist() == [0, 0]


def test_a_grid_that_does_not_fit_the_map_is_refused():
    with pytest.raises(BadInput, match=r"\[..., 7, 7\]: 1 prefix tokens and 2 x 3 patches"):
        grid_distance(np.zeros((1, 5, 5)), 2, 3, patch=16)
    with pytest.raises(BadInput, match="prefix tokens"):
        grid_distance(np.zeros((1, 1, 1)), 0, 3, patch=16)
