"""This file tests which numbers of heads go together against SciPy, and questions about weights against tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import BadInput, NotStored
from attnstore.store.comparison import compare
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.golden.make import Golden
from tests.store.making import ENCODER, make_store, random_examples

stats = pytest.importorskip("scipy.stats")

Numbers = dict[tuple[int, int], float]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Golden]:
    with Golden(tmp_path_factory.mktemp("golden")) as opened:
        yield opened


def numbers(store: Store, name: str) -> Numbers:
    """One number of every head, as another question or the stored lists give it."""
    if name in ("confidence", "entropy", "distance"):
        column = {"confidence": "value", "entropy": "entropy_nats", "distance": "distance_tokens"}[name]
        rows = (row for row in store.ask(f"heads/{name}", mode="macro") if row.get("variant", "with_sep") == "with_sep")
        return {(row["layer"], row["head"]): row[column] for row in rows}
    if name in ("cls", "sep"):
        return {
            (row["layer"], row["head"]): row["value"] for row in store.ask("heads/special") if row["metric"] == name
        }
    if name in ("output_norm", "output_share"):
        by_example: dict[int, list[list[float]]] = {}
        for row in store.sql("select example, output_norm from stored.output_norms").to_arrow().to_pylist():
            by_example.setdefault(row["example"], []).append(row["output_norm"])
        mean = np.mean([np.mean(rows, axis=0) for rows in by_example.values()], axis=0).reshape(2, 3)
        mean = mean / mean.sum(axis=1, keepdims=True) if name == "output_share" else mean
        return {place: float(value) for place, value in np.ndenumerate(mean)}  # type: ignore[misc]
    return {(row["layer"], row["head"]): row[name] for row in store.ask("weights/heads")}


NAMES = (
    "confidence", "entropy", "distance", "cls", "sep", "output_norm", "output_share", "w_output_share", "copying",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_of_heads_are_those_that_other_questions_give(golden: Golden, name: str) -> None:
    rows = golden.store.sql("from head_numbers where number = $name", name=name)
    found = {(row["layer"], row["head"]): row["value"] for row in rows}
    assert found == pytest.approx(numbers(golden.store, name))
    assert len(found) == 6


@pytest.mark.parametrize("x", ["w_output_share", "sep", "output_share"])
def test_coefficients_are_scipys_and_intervals_those_of_a_plain_bootstrap(golden: Golden, x: str) -> None:
    rows = {row["y"]: row for row in golden.store.ask("heads/correlate", x=x, bootstrap=60, seed=4)}
    assert set(NAMES) - {x} <= set(rows)
    assert x not in rows
    drawn = np.random.default_rng(4).integers(0, 6, (60, 6))
    for y in set(NAMES) - {x}:
        one, other = (numbers(golden.store, name) for name in (x, y))
        a, b = (np.array([values[head] for head in sorted(one)]) for values in (one, other))
        row = rows[y]
        assert (row["x"], row["n"]) == (x, 6)
        assert row["spearman"] == pytest.approx(stats.spearmanr(a, b).statistic), y
        assert row["pearson"] == pytest.approx(stats.pearsonr(a, b).statistic), y
        again = [stats.spearmanr(a[heads], b[heads]).statistic for heads in drawn if len(set(heads)) > 1]
        low, high = np.quantile(again, (0.025, 0.975))
        assert (row["low"], row["high"]) == pytest.approx((low, high)), y


def test_one_pair_is_as_in_the_list_of_all_and_the_order_is_by_strength(golden: Golden) -> None:
    every = list(golden.store.ask("heads/correlate", x="copying"))
    strength = [abs(row["spearman"]) for row in every]
    assert strength == sorted(strength, reverse=True)
    (one,) = golden.store.ask("heads/correlate", x="copying", y="sep")
    assert [one] == [row for row in every if row["y"] == "sep"]
    (bare,) = golden.store.ask("heads/correlate", x="copying", y="sep", bootstrap=0)
    assert (bare["low"], bare["high"]) == (None, None)
    assert bare["spearman"] == one["spearman"]


def test_a_number_with_itself_correlates_at_one(golden: Golden) -> None:
    (row,) = golden.store.ask("heads/correlate", x="sep", y="sep")
    assert [row[name] for name in ("spearman", "pearson")] == pytest.approx([1, 1])


def test_the_examples_that_are_asked_for_give_the_numbers(golden: Golden) -> None:
    (whole,), (part,) = (
        golden.store.ask("heads/correlate", x="entropy", y="sep", where=where) for where in (None, "example < 3")
    )
    assert whole["pearson"] != part["pearson"]
    assert len(golden.store.ask("heads/correlate", x="entropy", where="example < 0")) == 0


@pytest.mark.parametrize("asked", [{"bootstrap": -1}, {"seed": -1}])
def test_fewer_than_no_draws_are_refused(golden: Golden, asked: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="0 or more"):
        golden.store.ask("heads/correlate", **asked)


@pytest.mark.parametrize("asked", [{"x": "ablation_mean"}, {"y": "ablation_mean"}])
def test_an_intervention_that_was_not_run_is_refused_and_no_empty_answer(golden: Golden, asked: dict[str, str]) -> None:
    # The golden heads were switched off in two other ways.
    with pytest.raises(NotStored, match="no head of the store was switched off by intervention mean") as caught:
        golden.store.ask("heads/correlate", **asked)
    for setting in ('ablations.plan=["heads"]', 'ablations.intervention=["mean"]'):
        assert setting in caught.value.remedy
    assert len(golden.store.ask("heads/correlate", x="ablation_zero", y="ablation_uniform")) == 1
    with pytest.raises(NotStored, match="intervention mean"):
        golden.comparison.ask("compare/correlate", number="ablation_mean")


def test_a_store_without_weights_correlates_what_it_has_and_says_how_to_get_the_rest(tmp_path: Path) -> None:
    made = random_examples(3, (5, 8, 6), {"encoder": ENCODER})
    with open_store(make_store(tmp_path / "s.attn", made)) as store:
        found = {row["y"] for row in store.ask("heads/correlate")}
        assert found == {"entropy", "cls", "sep", "previous", "next", "self", "distance"}
        for asked, evidence in (
            ({"x": "copying"}, "weights"),
            ({"y": "w_output_norm"}, "weights"),
            ({"x": "output_share", "y": "sep"}, "value_norms"),
        ):
            with pytest.raises(NotStored) as caught:
                store.ask("heads/correlate", **asked)
            assert f'keep.evidence=["{evidence}"]' in caught.value.remedy
        for question in ("weights/heads", "weights/overlaps", "weights/composition"):
            with pytest.raises(NotStored, match="the store has no weights"):
                store.ask(question)
    with compare(tmp_path / "s.attn", tmp_path / "s.attn") as both:
        assert len(both.ask("compare/correlate")) == 8
        with pytest.raises(NotStored, match="of A"):
            both.ask("compare/correlate", number="copying")


def test_two_stores_share_the_heads_that_are_on_top_in_both(golden: Golden) -> None:
    a, b = golden.comparison.a, golden.comparison.b
    rows = {row["number"]: row for row in golden.comparison.ask("compare/correlate", share=0.5)}
    for name in ("entropy", "sep", "output_norm", "copying"):
        one, other = numbers(a, name), numbers(b, name)
        tops = [{head for head, _ in sorted(own.items(), key=lambda item: -item[1])[:3]} for own in (one, other)]
        row, shared = rows[name], sorted(tops[0] & tops[1])
        heads = sorted(one)
        expected = stats.spearmanr([one[head] for head in heads], [other[head] for head in heads]).statistic
        assert row["spearman"] == pytest.approx(expected)
        assert (row["shared"], row["top"], row["chance"], row["n"]) == (len(shared), 3, 1.5, 6)
        assert row["jaccard"] == pytest.approx(len(shared) / len(tops[0] | tops[1]))
        assert row["shared_heads"] == (" ".join(f"{layer}-{head}" for layer, head in shared) or None)


def test_a_store_shares_all_of_its_top_heads_with_itself(golden: Golden) -> None:
    with compare(golden.store, golden.store) as both:
        rows = list(both.ask("compare/correlate"))
    assert len(rows) > 8
    assert {(row["top"], row["shared"], row["jaccard"]) for row in rows} == {(1, 1, 1.0)}


def test_the_strongest_compositions_come_first_and_can_be_narrowed(golden: Golden) -> None:
    stored = golden.store.sql("from compositions").to_arrow().to_pylist()
    every = list(golden.store.ask("weights/composition"))
    assert [row["score"] for row in every] == sorted((row["score"] for row in stored), reverse=True)
    assert len(every) == 3 * 3 * 3
    for row in every:
        assert row["over_random"] == pytest.approx(row["score"] - 10**-0.5)
    only = list(golden.store.ask("weights/composition", relation="v", limit=4))
    assert only == [row for row in every if row["relation"] == "v"][:4]
    assert len(golden.store.ask("weights/composition", layer_b=0)) == 0
    assert len(golden.store.ask("weights/composition", layer_a=0, layer_b=1)) == 27


def test_overlaps_are_listed_from_the_most_alike(golden: Golden) -> None:
    found = [row["overlap"] for row in golden.store.ask("weights/overlaps")]
    assert found == sorted(found, reverse=True)
    assert len(found) == 6
    assert len(golden.store.ask("weights/overlaps", limit=2)) == 2
