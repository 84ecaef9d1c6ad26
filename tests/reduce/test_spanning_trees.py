"""This file tests the heaviest trees over nodes."""

from itertools import product

import numpy as np
import pytest

from attnstore.reduce.spanning_trees import maximum_arborescence, maximum_spanning_tree


def leads_to(governor, node, root):
    for _ in governor:
        if node == root:
            return True
        node = governor[node]
    return node == root


def all_arborescences(n_nodes, root):
    """Every choice of governors in which all nodes lead to the root."""
    others = [node for node in range(n_nodes) if node != root]
    for chosen in product(range(n_nodes), repeat=len(others)):
        governor = dict(zip(others, chosen, strict=True)) | {root: -1}
        ordered = [governor[node] for node in range(n_nodes)]
        if all(leads_to(ordered, node, root) for node in others):
            yield ordered


def total(weights, governor):
    return sum(weights[node, above] for node, above in enumerate(governor) if above >= 0)


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4, 5])
def test_no_tree_from_the_root_is_heavier(n_nodes):
    trees = {root: list(all_arborescences(n_nodes, root)) for root in range(n_nodes)}
    for seed in range(20):
        weights = np.random.default_rng(seed).random((n_nodes, n_nodes))
        root = seed % n_nodes
        found = maximum_arborescence(weights, root).tolist()
        assert found in trees[root]
        assert found == max(trees[root], key=lambda governor: total(weights, governor))


@pytest.mark.parametrize("seed", range(6))
def test_large_trees_weigh_what_networkx_finds(seed):
    networkx = pytest.importorskip("networkx")
    random = np.random.default_rng(seed)
    weights = random.random((17, 17)) ** 4  # far from even, so that cycles lie within cycles
    root = int(random.integers(17))
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from(
        (above, node, weights[node, above]) for node in range(17) for above in range(17) if node not in (above, root)
    )
    best = networkx.maximum_spanning_arborescence(graph)
    expected = {node: above for above, node in best.edges}
    assert dict(enumerate(maximum_arborescence(weights, root).tolist())) == expected | {root: -1}
    either = np.maximum(weights, weights.T)
    ties = networkx.maximum_spanning_tree(networkx.from_numpy_array(either - np.diag(np.diag(either)))).edges
    tied = maximum_spanning_tree(either)
    assert {frozenset(tie) for tie in ties} == {frozenset((node, int(tied[node]))) for node in range(1, 17)}


def test_two_cycles_are_broken_where_it_costs_least():
    # 1 and 2 choose each other, and so do 3 and 4; node 0 is the root.
    weights = np.zeros((5, 5))
    weights[1, 2] = weights[2, 1] = weights[3, 4] = weights[4, 3] = 0.9
    weights[2, 0], weights[1, 0], weights[3, 1], weights[4, 0] = 0.3, 0.2, 0.5, 0.1
    assert maximum_arborescence(weights, 0).tolist() == [-1, 2, 0, 1, 3]


def test_equal_weights_choose_the_lowest_node():
    assert maximum_arborescence(np.ones((4, 4)), 0).tolist() == [-1, 0, 0, 0]
    assert maximum_spanning_tree(np.zeros((4, 4))).tolist() == [-1, 0, 0, 0]


def test_weights_are_left_as_they_are():
    weights = np.ones((3, 3))
    maximum_arborescence(weights, 1)
    maximum_spanning_tree(weights)
    assert (weights == 1).all()


@pytest.mark.parametrize("n_nodes", [2, 3, 4, 5])
def test_no_tree_without_directions_is_heavier(n_nodes):
    for seed in range(10):
        weights = np.random.default_rng(seed).random((n_nodes, n_nodes))
        weights = np.maximum(weights, weights.T)
        heaviest = max(total(weights, governor) for governor in all_arborescences(n_nodes, 0))
        tied = maximum_spanning_tree(weights).tolist()
        assert all(leads_to(tied, node, 0) for node in range(n_nodes))
        assert total(weights, tied) == pytest.approx(heaviest)
