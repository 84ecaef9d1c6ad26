"""Tests of the questions about heads that are switched off, on predictions made up for the purpose."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import AttnStoreError, BadInput, NotStored
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.golden.make import golden_store
from tests.store.making import ENCODER, make_store, random_examples


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(golden_store(tmp_path_factory.mktemp("golden"))) as opened:
        yield opened


def rows(store: Store, question: str, **keys: Any) -> list[dict[str, Any]]:
    return store.ask(question, **keys).to_arrow().to_pylist()


def right(store: Store) -> dict[str, dict[int, bool]]:
    found: dict[str, dict[int, bool]] = {}
    for row in store.sql("from predictions where gold is not null").to_arrow().to_pylist():
        found.setdefault(row["head_set"], {})[row["example"]] = row["gold"] == row["predicted"]
    return found


@pytest.mark.parametrize("intervention", ["zero", "uniform"])
def test_a_head_has_the_share_of_examples_that_stay_right_without_it(store: Store, intervention: str) -> None:
    own = right(store)
    found = rows(store, "ablation/heads", intervention=intervention)
    assert len(found) == 6
    for row in found:
        name = f"{intervention} {row['layer']}-{row['head']}"
        assert row["value"] == pytest.approx(np.mean(list(own[name].values())))
        assert row["delta"] == pytest.approx(row["value"] - np.mean(list(own["none"].values())))
        assert (row["metric"], row["intervention"], row["n"]) == ("accuracy", intervention, 8)


def test_every_metric_may_be_asked_for_and_the_loss_turns_the_sign_of_harm(store: Store) -> None:
    names = [row["metric"] for row in store.sql("select distinct metric from set_scores").to_arrow().to_pylist()]
    assert sorted(names) == ["accuracy", "f1", "f1 no", "f1 yes", "loss", "matthews"]
    for name in names:
        assert {row["metric"] for row in rows(store, "ablation/heads", metric=name)} == {name}
    for row in store.sql("from head_effects").to_arrow().to_pylist():
        assert row["harm"] == (row["delta"] if row["metric"] == "loss" else -row["delta"])


def test_the_interval_of_a_difference_is_that_of_a_plain_paired_bootstrap(store: Store) -> None:
    own = right(store)
    first = rows(store, "ablation/heads", bootstrap=400, seed=3)
    assert first == rows(store, "ablation/heads", bootstrap=400, seed=3)
    assert first != rows(store, "ablation/heads", bootstrap=400, seed=4)
    rng = np.random.default_rng(0)
    for row in first:
        changed = own[f"zero {row['layer']}-{row['head']}"]
        difference = np.array([int(changed[number]) - int(own["none"][number]) for number in range(8)])
        # One of the nine examples has no label and is drawn like the others.
        draws = [difference[drawn[drawn < 8]].mean() for drawn in rng.integers(0, 9, (4000, 9)) if (drawn < 8).any()]
        assert row["delta_low"] <= row["delta"] <= row["delta_high"]
        assert (row["delta_low"], row["delta_high"]) == pytest.approx(
            tuple(np.quantile(draws, [0.025, 0.975])), abs=0.1
        )
    for question in ("ablation/layers", "ablation/pruning", "ablation/sets"):
        for row in rows(store, question, bootstrap=50):
            assert row["delta_low"] <= row["delta_high"]
    assert all(row["delta_low"] is None for row in rows(store, "ablation/heads", metric="f1", bootstrap=50))


def test_a_slice_is_scored_from_its_own_predictions(store: Store) -> None:
    own = right(store)
    for row in rows(store, "ablation/layers", where="example in (1, 4, 5)"):
        name = f"zero {row['layer']}-0 {row['layer']}-1 {row['layer']}-2"
        assert row["value"] == pytest.approx(np.mean([own[name][number] for number in (1, 4, 5)]))
        assert row["n"] == 3


@pytest.mark.parametrize("where", ["false", "example = 8"])  # the last example has no label
def test_a_slice_without_a_label_has_no_scores(store: Store, where: str) -> None:
    for question in ("heads", "layers", "pruning", "sets"):
        assert rows(store, f"ablation/{question}", where=where, bootstrap=20) == []


def test_one_example_has_no_correlation_and_never_a_number_that_is_none(store: Store) -> None:
    for metric in ("accuracy", "f1", "f1 yes", "loss", "matthews"):
        for row in rows(store, "ablation/heads", where="example = 2", metric=metric, bootstrap=20):
            assert all(value == value for value in row.values())
            assert metric != "matthews" or row["value"] is None


def test_pruning_is_in_order_of_heads_and_searches_in_order_of_what_is_left(store: Store) -> None:
    assert [row["k"] for row in rows(store, "ablation/pruning")] == [0, 1, 3]
    last = [row["head_set"] for row in rows(store, "ablation/pruning", ranking="importance")]
    assert last == ["none", "zero 1-2", "zero 1-2 1-1 1-0"]
    values = [row["value"] for row in rows(store, "ablation/sets")]
    assert values == sorted(values, reverse=True)
    losses = [row["value"] for row in rows(store, "ablation/sets", metric="loss", limit=3)]
    assert len(losses) == 3
    assert losses == sorted(losses)
    assert {row["series"] for row in rows(store, "ablation/sets", plan="beam")} == {"beam by accuracy"}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": "bleu"}, "metric: accuracy, f1, f1 no, f1 yes, loss, matthews"),
        ({"intervention": "mean"}, "intervention: one that"),
    ],
)
def test_what_was_not_run_is_refused_and_no_empty_answer(store: Store, params: dict[str, str], message: str) -> None:
    for question in ("heads", "layers", "pruning", "sets"):
        with pytest.raises(AttnStoreError, match=message):
            rows(store, f"ablation/{question}", **params)


@pytest.mark.parametrize("asked", [{"bootstrap": -1}, {"seed": -1}])
def test_fewer_than_no_draws_are_refused(store: Store, asked: dict[str, int], tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text(
        "-- Mine.\n-- reads: set_intervals(bootstrap=$bootstrap, seed=$seed)\n"
        "-- params: bootstrap integer = 5, seed integer = 0\nselect count(*) as n from set_intervals\n"
    )
    assert rows(store, str(mine))[0]["n"] > 0
    for question in (mine, *(f"ablation/{name}" for name in ("heads", "layers", "pruning", "sets"))):
        with pytest.raises(BadInput, match="0 or more"):
            rows(store, str(question), **asked)


def test_a_set_has_an_interval_for_each_metric_that_is_a_mean(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("-- Mine.\n-- reads: set_intervals(bootstrap=30)\nfrom set_intervals\n")
    found = {(row["head_set"], row["metric"]): row for row in rows(store, str(mine))}
    sets = {row["head_set"] for row in store.sql("select head_set from set_scores").to_arrow().to_pylist()}
    assert set(found) == {(name, metric) for name in sets for metric in ("accuracy", "loss")}
    for row in rows(store, "ablation/pruning", bootstrap=30, metric="loss"):
        own = found[row["head_set"], "loss"]
        assert (row["delta_low"], row["delta_high"]) == (own["delta_low"], own["delta_high"])
    assert (found["none", "loss"]["delta_low"], found["none", "loss"]["delta_high"]) == (0, 0)


def test_a_store_without_ablations_is_refused_with_the_command_that_adds_them(tmp_path: Path) -> None:
    made = make_store(tmp_path / "bare.attn", random_examples(1, (5,), {"encoder": ENCODER}))
    with open_store(made) as other, pytest.raises(NotStored, match=r'keep.evidence=\["ablations"\]'):
        other.ask("ablation/heads")
