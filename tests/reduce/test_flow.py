"""This file tests the attention between classes of tokens."""

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.flow import flow_facts


def classes(*names):
    return {"class": np.array(names, object)}


def test_the_worked_example(map_x):
    facts = flow_facts(map_x.weights, map_x.frame, classes("cls", "word", "word", "sep"))
    pairs = list(zip(facts["query_class"], facts["key_class"], strict=True))
    names = ["cls", "sep", "word"]
    assert pairs == [(query, key) for query in names for key in names]
    assert facts["n_queries"].tolist() == [1, 1, 1, 1, 1, 1, 2, 2, 2]
    assert facts["n_keys"].tolist() == [1, 1, 2, 1, 1, 2, 1, 1, 2]
    np.testing.assert_allclose(facts["mass"], [[0.1, 0.4, 0.5, 0.7, 0.1, 0.2, 0.65, 0.35, 1]], rtol=1e-6)


@pytest.mark.parametrize("cells", [1 << 18, 40])
def test_every_pair_of_classes_is_summed_by_its_definition(cells, pieced, monkeypatch):
    monkeypatch.setattr(blocks, "CELLS", cells)
    names = list("baxbacxxabbac")
    facts = flow_facts(pieced.weights, pieced.frame, classes(*names))
    assert len(facts["query_class"]) == 16
    for row, (query_class, key_class) in enumerate(zip(facts["query_class"], facts["key_class"], strict=True)):
        cells_of = [(i, j) for i in range(13) for j in range(13) if (names[i], names[j]) == (query_class, key_class)]
        assert facts["n_queries"][row] == names.count(query_class)
        assert facts["n_keys"][row] == names.count(key_class)
        for head, weights in enumerate(pieced.weights):
            assert facts["mass"][head, row] == pytest.approx(sum(weights[cell] for cell in cells_of), rel=1e-6)


def test_in_a_causal_map_no_weight_flows_forward(random_map, axis_of):
    axis = axis_of("0 1 2 3")
    facts = flow_facts(random_map(2, 4, 4, causal=True), Frame(axis, axis, True), classes("a", "a", "b", "b"))
    assert list(zip(facts["query_class"], facts["key_class"], strict=True))[1] == ("a", "b")
    assert facts["mass"][:, 1].tolist() == [0, 0]
    np.testing.assert_allclose(facts["mass"].sum(axis=1), 4, rtol=1e-6)


def test_one_class_holds_all_weight(map_x):
    facts = flow_facts(map_x.weights, map_x.frame, classes(*"tttt"))
    assert facts["mass"] == pytest.approx(4, rel=1e-6)
    assert (facts["n_queries"].tolist(), facts["n_keys"].tolist()) == ([4], [4])


def test_a_cross_map_flows_between_the_classes_of_two_texts(crossed):
    rows = classes("s", "w", "w", "w", "s") | {"key_class": np.array(["c", "n", "v", "c"], object)}
    facts = flow_facts(crossed.weights, crossed.frame, rows)
    assert facts["query_class"].tolist() == ["s", "s", "s", "w", "w", "w"]
    assert facts["key_class"].tolist() == ["c", "n", "v", "c", "n", "v"]
    assert facts["n_keys"].tolist() == [2, 1, 1, 2, 1, 1]
    np.testing.assert_allclose(facts["mass"][:, 3], crossed.weights[:, 1:4][:, :, [0, 3]].sum(axis=(1, 2)), rtol=1e-6)


def test_a_cross_map_needs_the_classes_of_its_keys(crossed):
    with pytest.raises(BadInput, match="a column key_class"):
        flow_facts(crossed.weights, crossed.frame, classes(*"abcde"))


@pytest.mark.parametrize("nothing", [None, 3, float("nan")])
def test_a_token_without_a_class_is_refused(nothing, map_x):
    with pytest.raises(BadInput, match=r"class of token 2 = .*; expected a string"):
        flow_facts(map_x.weights, map_x.frame, classes("a", "b", nothing, "a"))
