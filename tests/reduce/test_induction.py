"""This file tests the weight on previous tokens, on copies of a token, and on what followed them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Axis, Frame
from attnstore.reduce.induction import PATTERNS, induction_facts
from tests.reduce.conftest import row_maps


def frame_of(special, causal=True):
    mask = np.array(special, bool)
    nothing = np.zeros(len(mask), bool)
    axis = Axis(mask, nothing, nothing, nothing, np.full(len(mask), -1, np.int32), 0)
    return Frame(axis, axis, causal)


def texts(*spelled):
    return {"text": np.array([str(text) for text in spelled], object)}


def found(weights, special, spelled, *, causal=True, **options) -> dict[str, dict[str, Any]]:
    """{pattern: column -> value} of one map, or of several with lists over heads."""
    facts = induction_facts(np.asarray(weights, float), frame_of(special, causal), texts(*spelled), **options)
    return {
        name: {key: value[..., row] for key, value in facts.items() if key != "pattern"}
        for row, name in enumerate(facts["pattern"])
    }


def cells(spelled, name, *, causal=True):
    """The pairs of a pattern, found by putting all weight of a map on one cell after another."""
    n = len(spelled)
    one_hot = np.zeros((n * n, n, n))
    one_hot[np.arange(n * n), *np.divmod(np.arange(n * n), n)] = 1
    weight = found(one_hot, [False] * n, spelled, causal=causal)[name]["weight"]
    return {divmod(int(cell), n) for cell in np.flatnonzero(weight)}


def test_the_patterns_of_the_worked_example():
    assert cells([9, 5, 6, 5, 6], "duplicate") == {(3, 1), (4, 2)}
    assert cells([9, 5, 6, 5, 6], "induction") == {(3, 2), (4, 3)}
    assert cells([9, 5, 6, 5, 6], "previous") == {(1, 0), (2, 1), (3, 2), (4, 3)}


def test_two_equal_tokens_in_a_row_give_no_edge_to_the_token_itself():
    # The second 5 would find behind the first one itself.
    assert cells([9, 5, 5], "induction") == set()
    assert cells([9, 5, 5], "duplicate") == {(2, 1)}
    # Of three, the last finds the second one behind the first.
    assert cells([5, 5, 5], "induction") == {(2, 1)}


@settings(max_examples=60, deadline=None)
@given(spelled=st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_no_pattern_of_a_causal_map_has_the_token_itself_or_a_later_one(spelled):
    for name in ("previous", "duplicate", "induction"):
        assert all(key < query for query, key in cells(spelled, name))


def test_both_sides_count_where_later_tokens_are_seen():
    assert cells("aba", "duplicate", causal=False) == {(2, 0)}
    assert cells("aba", "duplicate_after", causal=False) == {(0, 2)}
    assert cells("aba", "next", causal=False) == {(0, 1), (1, 2)}
    assert cells("aba", "previous", causal=False) == {(1, 0), (2, 1)}


def test_a_causal_map_has_three_patterns_and_others_five():
    assert list(found(np.eye(3)[None], [0, 0, 0], "aba")) == ["previous", "duplicate", "induction"]
    assert tuple(found(np.eye(3)[None], [0, 0, 0], "aba", causal=False)) == PATTERNS


def test_induction_is_not_defined_where_later_tokens_are_seen():
    own = found(np.eye(3)[None], [0, 0, 0], "aba", causal=False)["induction"]
    assert own["n_pairs"] == 0
    assert all(np.isnan(own[name]).all() for name in ("weight", "total", "uniform", "uniform_total"))


def plain(weights, special, spelled, causal, exclude_bos, exclude_current):
    """The same by loops over all cells, as the definitions read."""
    n, tokens = len(spelled), [i for i in range(len(spelled)) if not special[i]]

    def copies(i):
        return [j for j in tokens if spelled[j] == spelled[i] and j != i]

    def keys(name, i):
        if name in ("previous", "next"):
            return [i - 1 if name == "previous" else i + 1]
        if name == "induction":
            return [j + 1 for j in copies(i) if j + 1 < i] if causal else []
        return [j for j in copies(i) if (j < i) == (name == "duplicate")]

    counts = [
        (i, j)
        for i in tokens
        for j in range(i + 1 if causal else n)
        if not (exclude_bos and j == 0) and not (exclude_current and i == j)
    ]
    rows = {}
    for name in PATTERNS if not causal else ("previous", "duplicate", "induction"):
        pairs = [(i, j) for i, j in counts if j in tokens and j in keys(name, i)]
        unknown = np.nan if name == "induction" and not causal else 1.0
        share = {i: 1 / (i + 1 if causal else n) for i in range(n)}
        rows[name] = {
            "n_queries": len(tokens),
            "n_pairs": len(pairs),
            "weight": [unknown * sum(head[cell] for cell in pairs) for head in weights],
            "total": [unknown * sum(head[cell] for cell in counts) for head in weights],
            "uniform": unknown * sum(share[i] for i, _ in pairs),
            "uniform_total": unknown * sum(share[i] for i, _ in counts),
        }
    return rows


@pytest.mark.parametrize("block", [1 << 18, 20])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_facts_are_what_plain_loops_give(block, data):
    n = data.draw(st.integers(1, 8))
    spelled = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    special = data.draw(st.lists(st.sampled_from([False, False, False, True]), min_size=n, max_size=n))
    causal, bos, current = (data.draw(st.booleans()) for _ in range(3))
    weights = data.draw(row_maps(2, n, n, causal))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS", block)
        own = found(weights, special, spelled, causal=causal, exclude_bos=bos, exclude_current=current)
    expected = plain(weights, special, spelled, causal, bos, current)
    assert own.keys() == expected.keys()
    for name, columns in expected.items():
        for key, value in columns.items():
            np.testing.assert_allclose(own[name][key], value, atol=1e-12, err_msg=f"{name} {key}")


@pytest.mark.parametrize("bos", [0, 1])
def test_random_tokens_that_stand_twice_have_the_pairs_of_the_definition(bos, random_map):
    n = 6
    spelled = ["<s>"] * bos + [f"t{i}" for i in range(n)] * 2
    weights = random_map(3, len(spelled), len(spelled), causal=True)
    own = found(weights, [True] * bos + [False] * 2 * n, spelled)
    inner = weights[:, bos:, bos:]
    expected = {
        "previous": [inner[:, i, i - 1] for i in range(1, 2 * n)],
        "duplicate": [inner[:, i, i - n] for i in range(n, 2 * n)],
        # Never (n - 1, 0): the last token of the first time has seen no copy of itself.
        "induction": [inner[:, i, i - n + 1] for i in range(n, 2 * n)],
    }
    for name, values in expected.items():
        assert own[name]["n_pairs"] == len(values)
        np.testing.assert_allclose(own[name]["weight"] / own[name]["n_pairs"], np.mean(values, axis=0), rtol=1e-6)


def test_a_head_that_copies_scores_1_and_one_that_rests_on_the_first_token_0():
    n = 5
    copying, resting = np.zeros((2, 2 * n, 2 * n))
    for i in range(2 * n):
        copying[i, max(i - n + 1, 0)] = 1
        resting[i, 0] = 1
    own = found([copying, resting], [False] * 2 * n, list(range(n)) * 2)["induction"]
    assert (own["weight"] / own["n_pairs"]).tolist() == [1, 0]


def test_what_both_methods_need_of_a_map_is_its_distance_from_the_pattern():
    # Rows (1), (.5 .5), (.2 .3 .5), (.1 .6 .1 .2); pairs of "previous" (1,0) (2,1) (3,2).
    weights = [[[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.6, 0.1, 0.2]]]
    own = found(weights, [False] * 4, "abcd")["previous"]
    assert own["weight"] == pytest.approx(0.9)
    assert own["total"] == pytest.approx(4)
    pattern = np.eye(4, k=-1)
    distance = np.abs(np.array(weights[0]) - pattern).sum()
    assert own["total"] - 2 * own["weight"] + own["n_pairs"] == pytest.approx(distance)
    # Of equal attention 1/2, 1/3 and 1/4 lie there.
    assert own["uniform"] == pytest.approx(1 / 2 + 1 / 3 + 1 / 4)
    assert own["uniform_total"] == pytest.approx(4)


def test_what_is_excluded_leaves_the_pairs_and_the_total():
    weights = [[[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]]
    bos = found(weights, [False] * 3, "abc", exclude_bos=True)["previous"]
    assert (bos["n_pairs"], *bos["weight"]) == (1, pytest.approx(0.3))
    assert bos["total"] == pytest.approx(0.5 + 0.3 + 0.5)
    assert bos["uniform_total"] == pytest.approx(0 + 1 / 2 + 2 / 3)
    current = found(weights, [False] * 3, "abc", exclude_current=True)["previous"]
    assert (current["n_pairs"], *current["weight"]) == (2, pytest.approx(0.8))
    assert current["total"] == pytest.approx(0 + 0.5 + 0.5)


def test_excluding_changes_no_map_and_no_later_answer(random_map):
    weights = random_map(2, 6, 6, causal=True)
    before = weights.copy()
    first = found(weights, [False] * 6, "abcabc")
    found(weights, [False] * 6, "abcabc", exclude_bos=True, exclude_current=True)
    assert (weights == before).all()
    again = found(weights, [False] * 6, "abcabc")
    assert all((again[name]["weight"] == first[name]["weight"]).all() for name in first)


def test_values_are_not_rounded():
    weights = [[[1, 0], [1.23456789e-5, 1 - 1.23456789e-5]]]
    assert found(weights, [False] * 2, "ab")["previous"]["weight"] == pytest.approx(1.23456789e-5, rel=1e-12)


def test_another_order_of_heads_gives_another_order_of_values(random_map):
    weights, order = random_map(4, 7, 7), [2, 0, 3, 1]
    own, moved = (found(maps, [0] * 7, "abcabca", causal=False) for maps in (weights, weights[order]))
    for name in PATTERNS:
        np.testing.assert_array_equal(moved[name]["weight"], own[name]["weight"][order])


def test_turning_a_text_round_swaps_the_sides(random_map):
    weights = random_map(2, 6, 6)
    own = found(weights, [0] * 6, "abacbd", causal=False)
    turned = found(weights[:, ::-1, ::-1], [0] * 6, "dbcaba", causal=False)
    for name, other in (("previous", "next"), ("duplicate", "duplicate_after")):
        assert turned[other]["n_pairs"] == own[name]["n_pairs"]
        np.testing.assert_allclose(turned[other]["weight"], own[name]["weight"], rtol=1e-6)


def test_a_text_of_special_tokens_alone_has_no_pairs():
    own = found(np.eye(2)[None], [True, True], "ab")
    assert all((row["n_queries"], row["n_pairs"], *row["total"]) == (0, 0, 0) for row in own.values())


def test_spellings_that_do_not_fit_the_map_are_refused():
    with pytest.raises(BadInput, match=r"shape \[2\]; expected \[3\]"):
        induction_facts(np.eye(3)[None], frame_of([0] * 3), texts("a", "b"))
