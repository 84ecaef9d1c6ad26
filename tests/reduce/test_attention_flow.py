"""This file tests the largest flow of attention through layers."""

import sys

import numpy as np
import pytest

from attnstore.errors import BadInput, MissingExtra
from attnstore.reduce.attention_flow import attention_flow

MAPS = np.array([[[0.6, 0.4], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]])


def test_two_layers_by_hand():
    pytest.importorskip("scipy")
    # Half identity makes layer 1 (.8 .2)(.1 .9) and layer 2 (.75 .25)(.45 .55). From output 0 to input 0:
    # min(.75, .8) through token 0 and min(.25, .1) through token 1; and so on.
    flows = np.array([[0.75 + 0.1, 0.2 + 0.25], [0.45 + 0.1, 0.2 + 0.55]])
    np.testing.assert_allclose(attention_flow(MAPS), flows / flows.sum(axis=1, keepdims=True), atol=1e-8)


def test_one_layer_flows_along_its_edges(random_map):
    pytest.importorskip("scipy")
    weights = random_map(1, 5, 5).astype(np.float64)
    np.testing.assert_allclose(attention_flow(weights, residual=0), weights[0], atol=1e-7)
    np.testing.assert_allclose(attention_flow(weights, residual=1), np.eye(5), atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("most", [1, 8])
def test_flows_are_those_of_networkx(most, causal, random_map):
    pytest.importorskip("scipy")
    networkx = pytest.importorskip("networkx")
    # With `most` heads these are their largest weights, of which rows sum to more than 1.
    maps = random_map(3 * most, 4, 4, causal=causal, seed=5).reshape(3, most, 4, 4).max(axis=1).astype(np.float64)
    graph = networkx.DiGraph()
    for layer, weights in enumerate(maps):
        for query in range(4):
            for key in range(4):
                capacity = 0.7 * weights[query, key] + 0.3 * (query == key)
                graph.add_edge((layer + 1, query), (layer, key), capacity=capacity)
    flows = np.array(
        [[networkx.maximum_flow_value(graph, (3, query), (0, key)) for key in range(4)] for query in range(4)]
    )
    expected = flows / flows.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(attention_flow(maps, residual=0.3), expected, atol=1e-8)


def test_rows_that_sum_to_many_times_1_do_not_overflow():
    pytest.importorskip("scipy")
    np.testing.assert_allclose(attention_flow(np.ones((2, 20, 20)), residual=0), 1 / 20, atol=1e-8)


def test_in_causal_maps_nothing_flows_forward(random_map):
    pytest.importorskip("scipy")
    assert (np.triu(attention_flow(random_map(2, 6, 6, causal=True)), k=1) == 0).all()


@pytest.mark.parametrize(
    ("maps", "residual", "message"),
    [
        (np.full((1, 65, 65), 1 / 65), 0.5, "65 tokens; expected at most 64"),
        (MAPS, 1.5, "residual = 1.5"),
        (MAPS[0], 0.5, r"maps of shape \[2, 2\]"),
        (MAPS[:0], 0.5, r"maps of shape \[0, 2, 2\]"),
        (-MAPS, 0.5, "weights outside 0 to 1"),
        (MAPS * np.nan, 0.5, "weights outside 0 to 1"),
    ],
)
def test_maps_that_do_not_fit_are_refused(maps, residual, message):
    with pytest.raises(BadInput, match=f"finding the flow of attention: {message}"):
        attention_flow(maps, residual)


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(MissingExtra, match=r"attnstore\[analysis\]"):
        attention_flow(MAPS)
