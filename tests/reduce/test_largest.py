"""Tests of the largest weights of rows against plain loops, ties and zeros included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.largest import largest_weights
from tests.conftest import random_maps

Floats = NDArray[np.float32]


def plainly(row: Floats, n: int) -> tuple[list[int], list[float], float, float]:
    """Keys, weights, the sum of the others and the largest of them, of one row."""
    order = sorted(range(len(row)), key=lambda key: (-row[key], key))
    others = [float(row[key]) for key in order[n:]]
    return order[:n], [float(row[key]) for key in order[:n]], sum(others), max(others, default=0.0)


def check(weights: Floats, n: int, causal_from: int | None = None) -> None:
    found = largest_weights(weights, n, causal_from=causal_from)
    for head, query in np.ndindex(weights.shape[:2]):
        keys, kept, rest, following = plainly(weights[head, query], n)
        assert found.key[head, query].tolist() == keys
        assert found.weight[head, query].tolist() == kept
        assert found.rest[head, query] == pytest.approx(rest, abs=1e-12)
        assert found.next[head, query] == following


def test_a_row_by_hand() -> None:
    found = largest_weights(np.array([[[0.125, 0.25, 0.0, 0.25, 0.375]]], np.float32), 2)
    assert found.key.tolist() == [[[4, 1]]]  # of the two equal ones the lower key
    assert found.weight.tolist() == [[[0.375, 0.25]]]
    assert (found.rest.tolist(), found.next.tolist()) == ([[0.375]], [[0.25]])


def test_nothing_is_left_out_of_a_row_that_has_no_more_weights() -> None:
    found = largest_weights(np.array([[[0.1, 0.2, 0.7], [0.0, 0.3, 0.7]]], np.float32), 3)
    assert found.key.tolist() == [[[2, 1, 0], [2, 1, 0]]]
    assert not found.rest.any()
    assert not found.next.any()
    # Two weights and zeros: what is cut weighs nothing, and its sum is exactly that.
    row = np.zeros((1, 1, 50), np.float32)
    row[0, 0, [3, 41]] = 0.3, 0.7
    found = largest_weights(row, 2)
    assert found.key.tolist() == [[[41, 3]]]
    assert (found.rest.tolist(), found.next.tolist()) == ([[0.0]], [[0.0]])


def test_negative_zero_is_no_weight_above_zero() -> None:
    found = largest_weights(np.array([[[-0.0, 0.0, 0.5]]], np.float32), 2)
    assert found.key.tolist() == [[[2, 0]]]
    assert not np.signbit(found.weight).any()


@given(
    weights=arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=3, max_dims=3, max_side=7),
        # Few different numbers, so that most rows have ties where they are cut.
        elements=st.sampled_from([0.0, 1e-45, 0.125, 0.25, 0.5, 1.0]),
    ),
    n=st.integers(1, 8),
)
def test_ties_are_settled_as_a_stable_sort_does(weights: Floats, n: int) -> None:
    check(weights, n)


@pytest.mark.parametrize("n", [1, 4, 11, 12, 30])
def test_random_maps_are_cut_as_by_plain_loops(n: int) -> None:
    check(random_maps(np.random.default_rng(0), 1, 3, 12, 12)[0], n)


@pytest.mark.parametrize("n", [1, 5, 12])
@pytest.mark.parametrize("start", [0, 4])
def test_keys_that_no_query_of_a_causal_block_sees_are_passed_over_without_a_difference(n: int, start: int) -> None:
    whole = random_maps(np.random.default_rng(1), 1, 3, 12, 12, causal=True)[0]
    check(whole[:, start : start + 3], n, causal_from=start)


def test_a_cut_to_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="1 or more"):
        largest_weights(np.ones((1, 1, 1), np.float32), 0)
