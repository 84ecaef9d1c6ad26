"""This file tests the numbers that tell vertical, diagonal and block maps apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.map_patterns import pattern_facts

NAMES = ["vertical", "neighbour", "diagonal", "block", "spread"]


def part(*numbers):
    return {"part": np.array(numbers, np.int32)}


def plain(weights, frame, parts):
    """The five numbers of one head [query, key] by their definition, row by row."""
    n_queries, n_keys = weights.shape
    special = frame.keys.special
    vertical = sum(weights[i, j] for i in range(n_queries) for j in range(n_keys) if special[j]) / n_queries
    spreads = []
    for i, row in enumerate(weights):
        visible = i + 1 if frame.causal else n_keys
        if visible > 1:
            spreads.append(-sum(weight * np.log(weight) for weight in row if weight > 0) / np.log(visible))
    spread = np.mean(spreads) if spreads else np.nan
    if not frame.is_self:
        return [vertical, np.nan, np.nan, np.nan, spread]
    plain_keys = [j for j in range(n_keys) if not special[j]]
    neighbour = sum(weights[i, j] for i in range(n_queries) for j in plain_keys if abs(i - j) == 1) / n_queries
    diagonal = sum(weights[j, j] for j in plain_keys) / n_queries
    block = np.nan
    if {0, 1} <= set(parts):
        with_part = [i for i in range(n_queries) if parts[i] >= 0]
        block = np.mean(
            [
                sum(weights[i, j] for j in with_part if parts[j] == parts[i])
                - np.mean([parts[j] == parts[i] for j in with_part])
                for i in with_part
            ]
        )
    return [vertical, neighbour, diagonal, block, spread]


def test_the_worked_example(map_x):
    facts = pattern_facts(map_x.weights, map_x.frame, part(-1, 0, 1, -1))
    assert list(facts) == NAMES
    # Special columns: .5 .5 .5 .8. Beside the query: (0, 1) .2, (1, 2) .2, (2, 1) .25, (3, 2) .1. On it: .3 and .25.
    # Own part: .3 - 1/2 and .25 - 1/2. Entropies as in token facts, over ln 4.
    entropies = [1.2798542, 1.2798542, np.log(4), 0.9404480]
    expected = [2.3 / 4, 0.75 / 4, 0.55 / 4, (0.3 + 0.25 - 1) / 2, np.mean(entropies) / np.log(4)]
    assert [facts[name].item() for name in NAMES] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("cells", [1 << 18, 30])
@given(data=st.data())
def test_every_number_is_what_its_definition_says(cells, data, examples):
    case = data.draw(examples)
    n_keys = len(case.frame.keys)
    numbers = data.draw(st.lists(st.integers(-1, 1), min_size=n_keys, max_size=n_keys))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS", cells)
        facts = pattern_facts(case.weights, case.frame, part(*numbers))
    for head, weights in enumerate(case.weights):
        found = [facts[name][head] for name in NAMES]
        np.testing.assert_allclose(found, plain(weights, case.frame, numbers), atol=1e-9)


def test_a_map_of_one_token_has_no_neighbours_and_no_spread(axis_of):
    axis = axis_of("0")
    facts = pattern_facts(np.ones((2, 1, 1), np.float32), Frame(axis, axis), part(0))
    assert facts["diagonal"].tolist() == [1, 1]
    assert facts["vertical"].tolist() == facts["neighbour"].tolist() == [0, 0]
    assert np.isnan(facts["spread"]).all()
    assert np.isnan(facts["block"]).all()


@pytest.mark.parametrize("numbers", [(-1, 0, 0, -1), (-1, 1, 1, -1), (-1, -1, -1, -1)])
def test_one_part_has_no_blocks(numbers, map_x):
    assert np.isnan(pattern_facts(map_x.weights, map_x.frame, part(*numbers))["block"]).all()


def test_attention_within_parts_of_equal_size_is_half_a_block_above_chance(axis_of):
    axis = axis_of("0 1 2 3")
    weights = np.kron(np.eye(2), np.full((2, 2), 0.5))[None]
    assert pattern_facts(weights, Frame(axis, axis), part(0, 0, 1, 1))["block"].tolist() == [0.5]


def test_uniform_causal_rows_have_a_spread_of_one(axis_of):
    axis = axis_of("0 1 2 3")
    weights = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
    assert pattern_facts(weights[None], Frame(axis, axis, True), part(0, 0, 0, 0))["spread"] == pytest.approx(1)


def test_a_cross_map_is_only_vertical_and_spread(crossed):
    facts = pattern_facts(crossed.weights, crossed.frame, {})
    assert [np.isnan(facts[name]).all() for name in NAMES] == [False, True, True, True, False]


@pytest.mark.parametrize(("rows", "message"), [({}, "a column part"), (part(0, 1), "part"), (part(0, 1, 2, 0), "2;")])
def test_parts_that_do_not_fit_are_refused(rows, message, map_x):
    with pytest.raises(BadInput, match=message):
        pattern_facts(map_x.weights, map_x.frame, rows)
