"""This file tests the distances between all heads of one example."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.divergence import sampled_rows
from attnstore.reduce.head_distances import head_distances


def by_definition(weights, eps, rows):
    """Every pair in turn, of [head, query, key]."""
    smoothed = eps / weights.shape[2] + (1 - eps) * weights[:, rows]
    found = []
    for a in range(len(weights)):
        for b in range(a + 1, len(weights)):
            p, q = smoothed[a], smoothed[b]
            middle = (p + q) / 2
            found.append((p * np.log(p / middle) + q * np.log(q / middle)).sum() / 2)
    return found


def test_the_worked_example():
    # Four tokens: on itself, on the next one (in a circle), on all alike; summed over rows at eps 1e-3.
    weights = np.stack([np.eye(4), np.roll(np.eye(4), 1, axis=1), np.full((4, 4), 0.25)])
    facts = head_distances(weights, eps=1e-3, sampled=0)
    np.testing.assert_allclose(facts["js"], [[2.7619090, 1.5100551, 1.5100551]], rtol=1e-6)
    assert facts["n_rows"].tolist() == [4]
    assert (facts["js"].dtype, facts["n_rows"].dtype) == (np.float32, np.int32)
    assert facts["js"][0, 0] / 4 < np.log(2)


@pytest.mark.parametrize("sampled", [0, 1, 4, 11, 12])
@pytest.mark.parametrize("eps", [1e-3, 0.2])
def test_every_pair_is_there_in_order_over_the_chosen_rows(random_map, sampled, eps):
    weights = random_map(5, 11, 11).astype(np.float64)
    facts = head_distances(weights, eps=eps, sampled=sampled)
    rows = range(11) if sampled in (0, 11, 12) else {1: [5], 4: [1, 4, 6, 9]}[sampled]
    assert sampled_rows(11, sampled).tolist() == list(rows)
    np.testing.assert_allclose(facts["js"][0], by_definition(weights, eps, list(rows)), rtol=1e-5)
    assert facts["n_rows"].tolist() == [len(rows)]


def test_layers_follow_one_another(random_map):
    weights = random_map(6, 7, 7)
    layered = head_distances(weights.reshape(2, 3, 7, 7))
    np.testing.assert_array_equal(layered["js"], head_distances(weights)["js"])
    assert layered["js"].shape == (1, 15)


def test_equal_heads_are_not_apart(random_map):
    weights = np.repeat(random_map(1, 5, 5), 3, axis=0)
    assert head_distances(weights)["js"].tolist() == [[0, 0, 0]]


def test_one_head_has_no_pairs(random_map):
    facts = head_distances(random_map(1, 5, 5))
    assert facts["js"].shape == (1, 0)
    assert facts["n_rows"].tolist() == [5]


def test_one_token_leaves_nothing_to_tell_heads_apart():
    assert head_distances(np.ones((3, 1, 1)))["js"].tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("params", [{"eps": 1.0}, {"eps": -0.1}, {"sampled": -1}])
def test_parameters_without_meaning_are_refused(random_map, params):
    with pytest.raises(BadInput):
        head_distances(random_map(2, 3, 3), **params)
