"""Tests of the shipped questions against answers that are worked out in a comment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.format.manifest import Kind
from attnstore.store.result import Result
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, one, sentence
from tests.store.making import Made, Text, make_store

# The map X of four tokens [CLS] a b [SEP].
X = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]], np.float32)


@pytest.fixture(scope="module")
def x(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = make_store(
        tmp_path_factory.mktemp("x") / "x.attn", [one(sentence(["a", "b"]), X)], kinds=ONE, precision="exact"
    )
    with open_store(root) as opened:
        yield opened


def values(found: Result, key: str) -> dict[str, float]:
    """Column `value` by another column."""
    return {row[key]: row["value"] for row in found}


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_positions_of_the_map_x(x: Store, mode: str) -> None:
    # self .1 + .3 + .25 + .1 over 4; next .2 + .2 + .25, previous .4 + .25 + .1, over 3 rows or over 4.
    strict = values(x.ask("heads/positions", mode=mode), "metric")
    assert strict == pytest.approx({"self": 0.1875, "next": 0.65 / 3, "previous": 0.25}, abs=1e-7)
    clark = values(x.ask("heads/positions", mode=mode, compat="clark"), "metric")
    assert clark == pytest.approx({"self": 0.1875, "next": 0.1625, "previous": 0.1875}, abs=1e-7)


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_special_tokens_of_the_map_x(x: Store, mode: str) -> None:
    # cls .1 + .4 + .25 + .7 = 1.45, sep .4 + .1 + .25 + .1 = .85, both over 4; from [SEP] .1, from the others .75.
    expected = {"cls": 0.3625, "sep": 0.2125, "punct": 0.0}
    strict = values(x.ask("heads/special", mode=mode), "metric")
    assert strict == pytest.approx({**expected, "sep_sep": 0.1, "rest_sep": 0.25}, abs=1e-7)
    clark = values(x.ask("heads/special", mode=mode, compat="clark"), "metric")
    assert clark == pytest.approx({**expected, "sep_sep": 0.05, "rest_sep": 0.375}, abs=1e-7)


def test_entropy_of_the_map_x(x: Store) -> None:
    (row,) = x.ask("heads/entropy")
    assert row["entropy_nats"] == pytest.approx(1.2216460, abs=1e-6)
    assert row["uniform_nats"] == pytest.approx(np.log(4))
    assert row["n"] == 1
    exact = -(X.astype(float) * np.log(X.astype(float))).sum(axis=1).mean()
    assert row["entropy_normalised"] == pytest.approx(exact / np.log(4), abs=1e-6)
    (row,) = x.ask("heads/entropy", variant="exact")
    assert row["entropy_nats"] == pytest.approx(exact, abs=1e-6)
    # eps = 1 would be uniform: close to it, the entropy is close to ln 4, and is computed from the maps.
    (row,) = x.ask("heads/entropy", eps=0.99)
    assert row["entropy_nats"] == pytest.approx(np.log(4), abs=1e-3)


def test_entropy_of_the_cls_row_of_x(x: Store) -> None:
    (row,) = x.ask("heads/cls_entropy")
    assert row["entropy_nats"] == pytest.approx(1.2798770, abs=1e-6)
    # Row (.1 .2 .3 .4): 1.2798542 nats exactly, by ln 4.
    assert row["entropy_normalised"] == pytest.approx(1.2798542 / np.log(4), abs=1e-6)
    assert x.ask("heads/cls_entropy", variant="exact").to_grid()[0, 0] == pytest.approx(1.2798542, abs=1e-6)


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_confidence_of_the_map_x(x: Store, mode: str) -> None:
    assert values(x.ask("heads/confidence", mode=mode), "variant") == pytest.approx(
        {
            "with_sep": 0.4375,  # (.4 + .4 + .25 + .7) / 4
            "drop_keys": 0.4125,  # (.3 + .4 + .25 + .7) / 4
            "drop_keys_and_queries": 0.95 / 3,  # without the last
            "drop_keys_renormalised": 0.5138889,  # (.3/.6 + .4/.9 + .25/.75 + .7/.9) / 4
        },
        abs=1e-6,
    )
    # Without [CLS] as well: row maxima .3 .3 .25 .1; of the queries a and b .3 .25.
    assert values(x.ask("heads/confidence", mode=mode, drop="special"), "variant") == pytest.approx(
        {
            "with_sep": 0.4375,
            "drop_keys": 0.95 / 4,
            "drop_keys_and_queries": 0.275,
            "drop_keys_renormalised": (0.3 / 0.5 + 0.3 / 0.5 + 0.5 + 0.5) / 4,
        },
        abs=1e-6,
    )


def test_distance_of_the_map_x(x: Store) -> None:
    # Mean over rows of sum_j A |i - j|.
    (row,) = x.ask("heads/distance")
    assert row["distance_tokens"] == pytest.approx(1.55, abs=1e-6)


def test_labels_follow_the_thresholds_and_the_later_rule_wins(x: Store) -> None:
    def label(**asked: float) -> tuple[Any, Any]:
        (row,) = x.ask("heads/labels", **asked)
        return row["label"], row["value"]

    # X: next .2167, previous .25, entropy 1.2216 of ln 4 = 1.3863 (0.881), cls .3625, sep .2125, punct 0.
    assert label() == (None, None)
    assert label(next=0.2) == ("next", pytest.approx(0.65 / 3))
    assert label(next=0.2, previous=0.2) == ("previous", pytest.approx(0.25))
    assert label(previous=0.2, broad=1.2) == ("broad", pytest.approx(1.2216460, abs=1e-6))
    assert label(broad=1.23) == (None, None)
    assert label(broad_share=0.88)[0] == "broad"
    assert label(broad_share=0.89)[0] is None
    assert label(broad=1.2, cls=0.36) == ("cls", pytest.approx(0.3625))
    assert label(cls=0.36, sep=0.21) == ("sep", pytest.approx(0.2125))
    assert label(sep=0.21, punct=-1) == ("punct", 0.0)
    (row,) = x.ask("heads/labels", next=0.2, compat="clark")
    assert row["label"] is None  # next is .1625 there


def test_macro_averages_examples_and_micro_their_rows(tmp_path: Path) -> None:
    # Two tokens that look at themselves, and X: self is 1 over 2 rows, and .75 over 4.
    two = one(sentence([]), np.eye(2), "two")
    with open_store(
        make_store(tmp_path / "two.attn", [two, one(sentence(["a", "b"]), X)], kinds=ONE, precision="exact")
    ) as store:
        macro, micro = (values(store.ask("heads/positions", mode=mode), "metric") for mode in ("macro", "micro"))
        assert macro["self"] == pytest.approx((1 + 0.1875) / 2, abs=1e-7)
        assert micro["self"] == pytest.approx((2 + 0.75) / 6, abs=1e-7)
        # next: 0 over 1 row and .65 over 3.
        assert macro["next"] == pytest.approx(0.65 / 3 / 2, abs=1e-7)
        assert micro["next"] == pytest.approx(0.65 / 4, abs=1e-7)
        assert store.ask("heads/entropy").to_numpy()["n"].tolist() == [2]


def test_rounding_and_row_sums_are_measured(tmp_path: Path) -> None:
    made = [one(sentence(["a", "b"]), X)]
    with open_store(make_store(tmp_path / "c.attn", made, kinds=ONE, precision="compact")) as store:
        # Largest weights .4 .4 .25 .7 are stored as (round(255 sqrt(w)) / 255)^2: .39861, .39861, .25195, .69782.
        codes = (np.rint(np.sqrt(X) * 255) / 255) ** 2
        (row,) = store.ask("audit/rounding")
        assert row["largest_difference"] == pytest.approx(np.abs(codes.max(axis=1) - X.max(axis=1)).max(), abs=3e-4)
        assert row["n"] == 4
        (row,) = store.ask("audit/rows")
        assert row["largest_error"] == pytest.approx(np.abs(codes.sum(axis=1) - 1).max(), abs=1e-6)
        assert row["mean_error"] == pytest.approx(np.abs(codes.sum(axis=1) - 1).mean(), abs=1e-6)
        assert len(store.ask("audit/rows", examples=0)) == 0
        assert len(store.ask("audit/rows", examples=1, layer=0, head=0)) == 1


def test_counts_are_those_of_the_tables(x: Store) -> None:
    counts = {row["name"]: row["n"] for row in x.ask("audit/counts")}
    assert counts == {
        **{"examples": 1, "tokens": 4, "words": 2, "mentions": 0, "links": 0, "heads": 1},
        **{"segments": 1, "additions": 0, "skipped": 0},
    }


def test_a_causal_model_has_no_normalised_entropy_of_its_first_token(tmp_path: Path) -> None:
    causal = {"decoder": Kind(1, 1, 1, "source", "source", True)}
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]], np.float32)
    text = Text(["[CLS]", "a", "b"], ["cls", None, None], [-1, 0, 1], sentence(["a", "b"]).words)
    made = [Made("c", text, {"decoder": weights[None, None]})]
    with open_store(make_store(tmp_path / "c.attn", made, kinds=causal, precision="exact")) as store:
        (row,) = store.ask("heads/entropy", variant="exact")
        # Rows: 0, ln 2, 1.5 ln 2; normalised over the last two: 1 and 1.5 ln 2 / ln 3.
        assert row["entropy_nats"] == pytest.approx(2.5 * np.log(2) / 3, abs=1e-6)
        assert row["entropy_normalised"] == pytest.approx((1 + 1.5 * np.log(2) / np.log(3)) / 2, abs=1e-6)
        assert row["uniform_nats"] == pytest.approx((np.log(2) + np.log(3)) / 3, abs=1e-6)
        (row,) = store.ask("heads/cls_entropy")
        assert (row["entropy_nats"], row["entropy_normalised"]) == (pytest.approx(0, abs=1e-6), None)


def test_an_example_without_sep_counts_only_where_it_can(tmp_path: Path) -> None:
    text = Text(["[CLS]", "a"], ["cls", None], [-1, 0], sentence(["a"]).words)
    with open_store(make_store(tmp_path / "n.attn", [one(text, [[0.5, 0.5], [0.25, 0.75]])], kinds=ONE)) as store:
        found = {row["metric"]: (row["value"], row["n"]) for row in store.ask("heads/special")}
        assert found["cls"] == (pytest.approx(0.375), 1)
        assert found["rest_sep"] == (0.0, 1)
        assert "sep_sep" not in found
        assert "rest_sep" not in {row["metric"] for row in store.ask("heads/special", compat="clark")}
