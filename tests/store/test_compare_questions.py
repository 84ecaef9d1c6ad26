"""Tests of the questions that join two stores head by head and dependent by dependent."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.format.manifest import Kind
from attnstore.store.comparison import Comparison, compare
from tests.store.comparing import pair, tiny, turned_stores
from tests.store.making import Made, make_store


@pytest.fixture(scope="module")
def turned(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Comparison, list[Made]]]:
    yield from turned_stores(made, tmp_path_factory.mktemp("turned"))


@pytest.mark.parametrize("shape", [Kind(2, 2, 2, "source", "source", False), Kind(1, 3, 3, "source", "source", False)])
def test_models_of_another_shape_are_refused_where_heads_are_joined_and_else_compared(
    shape: Kind, made: list[Made], tmp_path: Path
) -> None:
    cut = [replace(one, maps={"encoder": one.maps["encoder"][: shape.layers, : shape.heads]}) for one in made]
    a = make_store(tmp_path / "a.attn", made)
    b = make_store(tmp_path / "b.attn", cut, kinds={"encoder": shape})
    with compare(a, b) as comparison:
        expected = f"of A has 2 layers of 3 heads, that of B {shape.layers} layers of {shape.heads} heads"
        for question in ("compare/cosine", "compare/heads"):
            with pytest.raises(BadInput, match=expected):
                comparison.ask(question)
        entropies = comparison.b.ask("heads/entropy").to_grid("entropy_nats")
        summary = {row["metric"]: row for row in comparison.ask("compare/summary")}
        assert len(summary) == 8
        assert {(row["spearman"], row["n"]) for row in summary.values()} == {(None, 0)}
        assert summary["entropy"]["mean_b"] == pytest.approx(entropies.mean())
        steps = np.abs(np.diff(entropies, axis=0))
        assert summary["entropy"]["smoothness_b"] == (pytest.approx(steps.mean()) if steps.size else None)
        assert len(comparison.ask("compare/relations")) > 0


def test_a_question_whose_rows_say_of_which_store_they_are_joins_no_heads(made: list[Made], tmp_path: Path) -> None:
    cut = [replace(one, maps={"encoder": one.maps["encoder"][:1]}) for one in made]
    a = make_store(tmp_path / "a.attn", made)
    b = make_store(tmp_path / "b.attn", cut, kinds={"encoder": Kind(1, 3, 3, "source", "source", False)})
    own = tmp_path / "means.sql"
    columns = "layer, head, entropy_nats from {}.head_means where kind = $kind"
    text = f"select 'a' as store, {columns.format('a')} union all select 'b', {columns.format('b')}"
    head = "-- Means.\n-- reads: a.head_facts, b.head_facts\n-- params: kind text = null\n-- source: ours\n-- returns: "
    own.write_text(f"{head}store, layer, head, entropy_nats\n{text}")
    with compare(a, b) as comparison:
        rows = comparison.ask(str(own))
        assert [sum(row["store"] == side for row in rows) for side in "ab"] == [6, 3]


def test_heads_are_those_of_each_store_alone(turned: tuple[Comparison, list[Made]]) -> None:
    comparison, _ = turned
    found = {(r["metric"], r["layer"], r["head"]): r for r in comparison.ask("compare/heads", mode="micro")}
    for question, metrics in {
        "heads/entropy": {"entropy": "entropy_nats"},
        "heads/distance": {"distance": "distance_tokens"},
        "heads/positions": dict.fromkeys(("self", "previous", "next"), "value"),
        "heads/special": dict.fromkeys(("cls", "sep"), "value"),
        "heads/confidence": {"confidence": "value"},
    }.items():
        for side, store in (("a", comparison.a), ("b", comparison.b)):
            for row in store.ask(question, mode="micro"):
                for metric, column in metrics.items():
                    if row.get("metric", metric) == metric and row.get("variant", "with_sep") == "with_sep":
                        own = found[metric, row["layer"], row["head"]]
                        assert own[f"value_{side}"] == pytest.approx(row[column])
    assert len(found) == 48
    assert all(row["difference"] == row["value_b"] - row["value_a"] for row in found.values())


def test_another_eps_is_computed_in_both_stores(turned: tuple[Comparison, list[Made]]) -> None:
    comparison, _ = turned
    found = comparison.ask("compare/heads", metric="entropy", eps=0.1).to_numpy()
    for side, store in (("a", comparison.a), ("b", comparison.b)):
        own = store.ask("heads/entropy", eps=0.1).to_numpy()["entropy_nats"]
        np.testing.assert_allclose(found[f"value_{side}"], own, rtol=1e-6)


def test_a_summary_is_that_of_an_independent_computation(turned: tuple[Comparison, list[Made]]) -> None:
    stats = pytest.importorskip("scipy.stats")
    comparison, _ = turned
    for row in comparison.ask("compare/summary"):
        heads = comparison.ask("compare/heads", metric=row["metric"])
        a, b = (heads.to_grid(f"value_{side}") for side in ("a", "b"))
        assert row["spearman"] == pytest.approx(stats.spearmanr(a.ravel(), b.ravel()).statistic)
        assert row["smoothness_a"] == pytest.approx(np.abs(a[0] - a[1]).mean())
        assert row["smoothness_b"] == pytest.approx(np.abs(b[0] - b[1]).mean())
        assert row["mean_difference"] == pytest.approx((b - a).mean())


def test_relations_are_those_of_each_store_alone_and_changes_add_up(turned: tuple[Comparison, list[Made]]) -> None:
    comparison, _ = turned
    found = {row["relation"]: row for row in comparison.ask("compare/relations")}
    for side, store in (("a", comparison.a), ("b", comparison.b)):
        for row in store.ask("relations/best"):
            own = found[row["relation"]]
            assert (own["n"], own[f"accuracy_{side}"]) == (row["n"], row["accuracy"])
            best = tuple(own[f"{column}_{side}"] for column in ("layer", "head", "direction"))
            assert best == (row["layer"], row["head"], row["direction"])
    assert any(row["gained"] and row["lost"] for row in found.values())
    for row in found.values():
        assert row["gained"] - row["lost"] == round((row["accuracy_b"] - row["accuracy_a"]) * row["n"])


def test_gained_and_lost_dependents_are_counted_by_hand(tmp_path: Path) -> None:
    def annotated(weights: Any) -> Made:
        one = tiny("e", ["x", "y", "z"], weights)
        words: list[dict[str, Any]] = [
            {"form": "x", "governor": 1, "deprel": "det"},
            {"form": "y", "governor": None, "deprel": "root"},
            {"form": "z", "governor": 1, "deprel": "det"},
        ]
        return replace(one, source=replace(one.source, words=words))

    # The row of x weighs y most in A, which is right, and that of z weighs x; in B it is the other way round. The most
    # that x and z get is from one another, so that no direction but dep_to_head gets any right.
    a = annotated([[0.1, 0.8, 0.1], [0.1, 0.1, 0.1], [0.8, 0.1, 0.1]])
    b = annotated([[0.1, 0.1, 0.8], [0.1, 0.1, 0.1], [0.15, 0.8, 0.05]])
    with pair(tmp_path, [a], [b]) as comparison:
        (row,) = comparison.ask("compare/relations", relation="det")
        assert (row["n"], row["accuracy_a"], row["accuracy_b"]) == (2, 0.5, 0.5)
        assert (row["gained"], row["lost"]) == (1, 1)


def test_a_noun_below_two_adpositions_is_gained_for_the_one_and_lost_for_the_other(tmp_path: Path) -> None:
    def annotated(weights: Any) -> Made:
        one = tiny("e", ["out", "of", "town"], weights)
        words: list[dict[str, Any]] = [
            {"form": "out", "governor": 2, "deprel": "case", "upos": "ADP"},
            {"form": "of", "governor": 2, "deprel": "case", "upos": "ADP"},
            {"form": "town", "governor": None, "deprel": "root", "upos": "NOUN"},
        ]
        return replace(one, source=replace(one.source, words=words))

    # pobj: town below out, and below of. The row of town weighs out most in A and of in B, and the same word's row
    # weighs town most, so that neither direction gets both right.
    a = annotated([[0.2, 0.4, 0.4], [0.4, 0.3, 0.3], [0.6, 0.2, 0.2]])
    b = annotated([[0.3, 0.4, 0.3], [0.4, 0.2, 0.4], [0.2, 0.6, 0.2]])
    with pair(tmp_path, [a], [b]) as comparison:
        (row,) = comparison.ask("compare/relations", relation="pobj")
        assert (row["n"], row["accuracy_a"], row["accuracy_b"]) == (2, 0.5, 0.5)
        assert (row["gained"], row["lost"]) == (1, 1)
