"""Questions about gradients, with answers that are worked out in a comment, on rows written by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnstore.format import names
from attnstore.format.commit import commit, publish, seal, stage
from attnstore.format.manifest import Kind, read_store
from attnstore.format.parquet import TableWriter
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import Made, make_store, random_examples

TWO = {"encoder": Kind(1, 2, 2, "source", "source", False)}


def example(label: str | None) -> Made:
    (made,) = random_examples(1, (3,), TWO)
    return Made("x", made.source, made.maps, columns={"label": label})


def store_of(root: Path, made: Sequence[Made], table: str, rows: Sequence[Mapping[str, Any]]) -> Store:
    """A store of two heads with these rows of a table of evidence; every row is of kind encoder."""
    named = [Made(f"e{number}", item.source, item.maps, columns=item.columns) for number, item in enumerate(made)]
    make_store(root, named, kinds=TWO)
    staging = stage(root, f"{names.ADDITIONS}/given")
    writer = TableWriter(staging, table)
    writer.append_rows([{"kind": "encoder", **row} for row in rows])
    seal(staging, f"{names.ADDITIONS}/given", {"scope": "store"}, {table: writer.close()})
    publish(staging, root, f"{names.ADDITIONS}/given")
    commit(root, read_store(root).store_id)
    return open_store(root)


def pair(number: int, classes: tuple[str, str], sizes: tuple[int, int], sums: Any, pairs: int | None = None) -> Any:
    """A row of gradient_facts: `sums` are |G|, A G, |A G| and A of head 0, or None; head 1 has twice as much."""
    columns = ("abs_gradient", "gradient_weight", "abs_gradient_weight", "weight")
    values = (None,) * 4 if sums is None else sums
    return {
        "example": number,
        "query_class": classes[0],
        "key_class": classes[1],
        "n_queries": sizes[0],
        "n_keys": sizes[1],
        "n_pairs": sizes[0] * sizes[1] if pairs is None else pairs,
        **{name: [value, None if value is None else 2 * value] for name, value in zip(columns, values, strict=True)},
    }


# Example 0: one [CLS] and three others; example 1: one [CLS] and one other; example 2: [CLS] alone, one of its sums
# being no number.
GRADIENTS = [
    pair(0, ("cls", "cls"), (1, 1), (4.0, -2.0, 2.0, 0.5)),
    pair(0, ("cls", "other"), (1, 3), (6.0, 1.0, 3.0, 0.5)),
    pair(0, ("other", "cls"), (3, 1), (8.0, 2.0, 4.0, 1.0)),
    pair(0, ("other", "other"), (3, 3), (30.0, 3.0, 9.0, 2.0)),
    pair(1, ("cls", "cls"), (1, 1), (1.0, 1.0, 1.0, 0.25)),
    pair(1, ("cls", "other"), (1, 1), (2.0, -1.0, 1.0, 0.75)),
    pair(1, ("other", "cls"), (1, 1), (3.0, 0.5, 0.5, 0.5)),
    pair(1, ("other", "other"), (1, 1), (7.0, -0.5, 0.5, 0.5)),
    pair(2, ("cls", "cls"), (1, 1), None),
]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("graded") / "s.attn"
    with store_of(place, [example(None)] * 3, "gradient_facts", GRADIENTS) as store:
        yield store


def found(store: Store, question: str, head: int, **params: Any) -> dict[tuple[str, ...], dict[str, Any]]:
    """Rows of a head by their classes."""
    rows = store.ask(question, **params).to_arrow().to_pylist()
    return {(row["query_class"], row["key_class"]): row for row in rows if row["head"] == head}


def test_gradients_by_class_are_means_over_pairs(graded: Store) -> None:
    # To [CLS]: (4 + 8) / 4 pairs = 3 in example 0, (1 + 3) / 2 = 2 in example 1; to others 36 / 12 = 3 and 9 / 2 = 4.5.
    rows = found(graded, "gradients/classes", 0)
    assert {key: row["mean_abs_gradient"] for key, row in rows.items()} == {("all", "cls"): 2.5, ("all", "other"): 3.75}
    # A G: (-2 + 2) / 4 and (1 + .5) / 2; (1 + 3) / 12 and (-1 - .5) / 2.
    assert rows["all", "cls"]["mean_gradient_weight"] == pytest.approx(0.375)
    assert rows["all", "other"]["mean_gradient_weight"] == pytest.approx((4 / 12 - 0.75) / 2)
    assert rows["all", "cls"]["mean_abs_gradient_weight"] == pytest.approx((6 / 4 + 1.5 / 2) / 2)
    # The example without numbers counts for [CLS] alone: it has no others.
    assert (rows["all", "cls"]["n"], rows["all", "cls"]["not_finite"]) == (2, 1)
    assert (rows["all", "other"]["n"], rows["all", "other"]["not_finite"]) == (2, 0)
    twice = found(graded, "gradients/classes", 1)
    assert twice["all", "cls"]["mean_abs_gradient"] == 5.0
    # All pairs alike: (12 + 4) / 6 and (36 + 9) / 14.
    micro = found(graded, "gradients/classes", 0, mode="micro")
    assert micro["all", "cls"]["mean_abs_gradient"] == pytest.approx(16 / 6)
    assert micro["all", "other"]["mean_abs_gradient"] == pytest.approx(45 / 14)


def test_sums_over_keys_are_means_over_queries(graded: Store) -> None:
    # To [CLS]: 12 / 4 queries and 4 / 2; to others 36 / 4 and 9 / 2.
    rows = found(graded, "gradients/classes", 0, average="keys_summed")
    assert rows["all", "cls"]["mean_abs_gradient"] == pytest.approx(2.5)
    assert rows["all", "other"]["mean_abs_gradient"] == pytest.approx(6.75)
    # The weights of a query add up to 1.
    assert rows["all", "cls"]["mean_weight"] + rows["all", "other"]["mean_weight"] == pytest.approx(1)
    micro = found(graded, "gradients/classes", 0, average="keys_summed", mode="micro")
    assert micro["all", "other"]["mean_abs_gradient"] == pytest.approx(45 / 6)
    assert micro["all", "cls"]["mean_weight"] == pytest.approx((0.5 + 1.0 + 0.25 + 0.5) / 6)


def test_gradients_by_class_of_the_query(graded: Store) -> None:
    rows = found(graded, "gradients/classes", 0, queries="by_class")
    assert {key: row["mean_abs_gradient"] for key, row in rows.items()} == {
        ("cls", "cls"): (4 + 1) / 2,
        ("cls", "other"): (6 / 3 + 2) / 2,
        ("other", "cls"): pytest.approx((8 / 3 + 3) / 2),
        ("other", "other"): pytest.approx((30 / 9 + 7) / 2),
    }


def test_a_class_that_no_query_sees_and_one_that_an_example_lacks(tmp_path: Path) -> None:
    # In a causal map nothing before the last token sees it; a second example has no [SEP] at all.
    rows = [
        pair(0, ("other", "other"), (2, 2), (3.0, 0.0, 3.0, 2.0), pairs=3),
        pair(0, ("other", "sep"), (2, 1), (0.0, 0.0, 0.0, 0.0), pairs=0),
        pair(1, ("other", "other"), (1, 1), (5.0, 0.0, 5.0, 1.0)),
    ]
    with store_of(tmp_path / "s.attn", [example(None)] * 2, "gradient_facts", rows) as store:
        by_pair = found(store, "gradients/classes", 0)
        assert by_pair["all", "sep"]["mean_abs_gradient"] is None
        assert by_pair["all", "sep"]["n"] == 0
        assert by_pair["all", "other"]["mean_abs_gradient"] == pytest.approx((1 + 5) / 2)
        assert found(store, "gradients/classes", 0, average="keys_summed")["all", "sep"]["mean_abs_gradient"] == 0


def test_gradients_of_which_none_is_finite_are_null_and_counted(tmp_path: Path) -> None:
    with store_of(tmp_path / "s.attn", [example(None)], "gradient_facts", GRADIENTS[-1:]) as store:
        for question in ({"average": "pairs"}, {"average": "keys_summed"}, {"mode": "micro"}):
            row = found(store, "gradients/classes", 0, **question)["all", "cls"]
            assert (row["mean_abs_gradient"], row["n"], row["not_finite"]) == (None, 0, 1)


def by_head(number: int, head: int, **values: Any) -> dict[str, Any]:
    return {"example": number, "layer": 0, "head": head, **values}


def test_importance_signed_absolute_and_by_token(tmp_path: Path) -> None:
    def row(number: int, head: int, importance: float | None, absolute: float | None, tokens: int) -> dict[str, Any]:
        return by_head(number, head, importance=importance, importance_abs_tokens=absolute, n_tokens=tokens)

    rows = [row(0, 0, 3.0, 5.0, 4), row(1, 0, -1.0, 1.0, 2), row(2, 0, None, None, 9)]
    rows += [row(0, 1, 0.5, 2.0, 4), row(1, 1, 2.5, 4.0, 2), row(2, 1, None, None, 9)]
    with store_of(tmp_path / "s.attn", [example(None)] * 3, "importance_facts", rows) as store:
        first, second = store.ask("gradients/importance").to_arrow().to_pylist()
        # Signed (3 - 1) / 2, absolute (3 + 1) / 2, by token 6 / 6; of the second 1.5, 1.5 and 6 / 6.
        assert [first[f"importance{name}"] for name in ("_signed", "", "_by_token")] == [1.0, 2.0, 1.0]
        assert [second[f"importance{name}"] for name in ("_signed", "", "_by_token")] == [1.5, 1.5, 1.0]
        assert [row["rank"] for row in (first, second)] == [1, 2]
        assert [(row["n"], row["not_finite"]) for row in (first, second)] == [(2, 1), (2, 1)]
        # Over the layer's two heads: 2 and 1.5 have the length 2.5.
        scaled = store.ask("gradients/importance", normalise="layer").to_arrow().to_pylist()
        assert [row["importance"] for row in scaled] == pytest.approx([0.8, 0.6])
        assert sum(row["importance_by_token"] ** 2 for row in scaled) == pytest.approx(1)


def test_heads_without_importance_are_null_not_nan(tmp_path: Path) -> None:
    rows = [
        by_head(0, head, importance=value, importance_abs_tokens=value, n_tokens=4)
        for head, value in enumerate([0.0, None])
    ]
    with store_of(tmp_path / "s.attn", [example(None)], "importance_facts", rows) as store:
        zero, none = store.ask("gradients/importance", normalise="layer").to_arrow().to_pylist()
        assert (zero["importance"], zero["rank"]) == (None, None)  # 0 / 0
        assert (none["importance"], none["rank"], none["not_finite"]) == (None, None, 1)
        assert store.ask("gradients/importance", where="name = 'nobody'").to_arrow().num_rows == 0


def test_attribution_of_heads_and_what_the_steps_left_out(tmp_path: Path) -> None:
    rows = [
        by_head(0, 0, max=0.5, sum=1.0, change=3.5),
        by_head(0, 1, max=1.5, sum=2.0, change=3.5),
        by_head(1, 0, max=0.1, sum=-1.0, change=-0.5),
        by_head(1, 1, max=0.3, sum=0.25, change=-0.5),
        by_head(2, 0),
        by_head(2, 1),
    ]
    with store_of(tmp_path / "s.attn", [example(None)] * 3, "attribution_facts", rows) as store:
        first, second = store.ask("gradients/attribution").to_arrow().to_pylist()
        assert (first["score"], second["score"]) == pytest.approx((0.3, 0.9))
        assert (first["share"], second["share"]) == pytest.approx((0.0, 1.125))
        # 3 of 3.5, and -.75 of -.5.
        assert first["missing"] == second["missing"] == pytest.approx((0.5 + 0.25) / 2)
        assert first["layer_change"] == pytest.approx(1.5)
        assert [(row["rank"], row["n"], row["not_finite"]) for row in (first, second)] == [(2, 2, 1), (1, 2, 1)]


def test_contributions_are_means_over_the_examples_of_a_class(tmp_path: Path) -> None:
    rows = [
        by_head(number, head, true_class=true, predicted_class=1.0 + number)
        for number, true in enumerate([2.0, 4.0, -1.0, None])
        for head in (0, 1)
    ]
    made = [example("yes"), example("yes"), example("no"), example(None)]
    with store_of(tmp_path / "s.attn", made, "logit_contributions", rows) as store:
        answers = store.ask("classes/contributions").to_arrow().to_pylist()
        assert [(row["head"], row["class"], row["to_true"], row["to_predicted"], row["n"]) for row in answers] == [
            (0, "no", -1.0, 3.0, 1),
            (0, "yes", 3.0, 1.5, 2),
            (1, "no", -1.0, 3.0, 1),
            (1, "yes", 3.0, 1.5, 2),
        ]
