"""Plans of ablations: what is kept, scores against scikit-learn, resumption, what several plans share, refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import attnstore
from attnstore.errors import BadInput, NotStored
from attnstore.format import names
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.run import ingest

torch = pytest.importorskip("torch")
sklearn = pytest.importorskip("sklearn.metrics")

from attnstore.job.evidence import ablations as ablations_module  # noqa: E402
from attnstore.job.evidence import part as part_module  # noqa: E402
from tests.capture.conftest import one_thread, tiny  # noqa: E402
from tests.job.task_models import TEXTS, evidence_recipe, labelled, task_model  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

HEADS = [(layer, head) for layer in range(2) for head in range(4)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return task_model(tmp_path_factory.mktemp("models"), "bert", "classification")


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several segments from five short texts, and several parts of each."""
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)
    monkeypatch.setattr(ablations_module, "TOGETHER", 5)


def recipe(corpus: Path, model: Path, plan: list[str], task: str = "classification", **keys: Any) -> Any:
    keys = {f"ablations__{name}" if "__" not in name else name: value for name, value in keys.items()}
    return evidence_recipe(corpus, model, ("ablations",), task, ablations__plan=plan, **keys)


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    with attnstore.open(store) as opened:
        return opened.sql(sql).to_arrow().to_pylist()


def values(store: Path, metric: str) -> dict[str, float]:
    found = rows(store, f"select head_set, value from head_scores where metric = '{metric}'")
    return {row["head_set"]: row["value"] for row in found}


def test_every_head_and_layer_has_predictions_of_each_example_and_scores(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["heads", "layers"], intervention=["zero", "uniform"]), store).close()
    singles = {f"{how} {layer}-{head}" for how in ("zero", "uniform") for layer, head in HEADS}
    layers = {f"{how} " + " ".join(f"{n}-{head}" for head in range(4)) for how in ("zero", "uniform") for n in (0, 1)}
    found = rows(
        store, "select head_set, count(*) as n, count(distinct example) as examples from predictions group by 1"
    )
    assert {row["head_set"]: (row["n"], row["examples"]) for row in found} == dict.fromkeys(
        {"none"} | singles | layers, (5, 5)
    )
    sets = rows(store, "from head_sets")
    assert Counter((row["plan"], row["intervention"], row["size"]) for row in sets) == {
        **{("heads", how, 1): 8 for how in ("zero", "uniform")},
        **{("layers", how, 4): 2 for how in ("zero", "uniform")},
    }
    one = next(row for row in sets if row["head_set"] == "uniform 1-2")
    assert (one["kind"], one["layer"], one["head"], one["layers"], one["heads"]) == ("encoder", 1, 2, [1], [2])
    assert next(row for row in sets if row["head_set"] == "zero 1-0 1-1 1-2 1-3")["head"] is None
    assert list(verify(store, deep=True)) == []
    missing = rows(store, "from predictions join examples using (example) where name = 'c'")
    assert {(row["n"], row["loss"], row["gold"]) for row in missing} == {(0, None, None)}


def test_scores_are_those_of_scikit_learn_over_all_examples_and_over_some(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["heads"]), store).close()
    stored = {(row["head_set"], row["metric"]): row["value"] for row in rows(store, "from head_scores")}
    assert {row["n"] for row in rows(store, "from head_scores")} == {4}
    every = rows(store, "from predictions where gold is not null")
    assert len({(row["head_set"]) for row in every}) == 9
    predicted = {
        name: tuple(r["predicted"] for r in every if r["head_set"] == name) for name in {r["head_set"] for r in every}
    }
    assert len(set(predicted.values())) > 1  # a model that always says the same would show little
    for name in predicted:
        own = [row for row in every if row["head_set"] == name]
        gold, said = [row["gold"] for row in own], [row["predicted"] for row in own]
        assert stored[name, "accuracy"] == pytest.approx(sklearn.accuracy_score(gold, said))
        assert stored[name, "f1"] == pytest.approx(sklearn.f1_score(gold, said, average="macro"))
        assert stored[name, "f1 good"] == pytest.approx(sklearn.f1_score(gold, said, pos_label="good"))
        assert stored[name, "loss"] == pytest.approx(np.mean([row["loss"] for row in own]))
        if len(set(said)) > 1:
            assert stored[name, "matthews"] == pytest.approx(sklearn.matthews_corrcoef(gold, said))
        else:
            assert stored[name, "matthews"] is None
    with attnstore.open(store) as opened:
        some = opened.ask("ablation/heads", where="label = 'good'").to_arrow().to_pylist()
        for row in some:
            own = [
                one
                for one in every
                if one["head_set"] == f"zero {row['layer']}-{row['head']}" and one["gold"] == "good"
            ]
            assert (row["value"], row["n"]) == (np.mean([one["predicted"] == "good" for one in own]), 2)
        by_loss = opened.ask("ablation/heads", metric="loss").to_arrow().to_pylist()
        assert [row["delta"] for row in by_loss] == pytest.approx(
            [stored[f"zero {layer}-{head}", "loss"] - stored["none", "loss"] for layer, head in HEADS]
        )


def test_the_three_interventions_are_three_experiments_and_the_mean_says_what_it_is_over(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["heads"], intervention=["zero", "uniform", "mean"]), store).close()
    losses = values(store, "loss")
    for layer, head in HEADS:
        assert len({round(losses[f"{how} {layer}-{head}"], 7) for how in ("zero", "uniform", "mean")}) == 3
    means = rows(store, "from mean_outputs order by layer, head")
    tokens = rows(store, "select sum(n_tokens)::integer as n from examples")[0]["n"]
    assert [(row["layer"], row["head"]) for row in means] == HEADS
    assert {row["n"] for row in means} == {tokens}
    assert {len(row["mean_output"]) for row in means} == {8}


def test_a_set_of_several_plans_is_run_once(tmp_path: Path, corpus: Path, classifier: Path) -> None:
    store = tmp_path / "s.attn"
    plans = ["heads", "layers", "pruning", "greedy", "beam"]
    ingest(recipe(corpus, classifier, plans, steps=[1, 4, 8], depth=1, width=2, metric="loss"), store).close()
    assert max(row["n"] for row in rows(store, "select count(*) as n from predictions group by head_set, example")) == 1
    assert max(row["n"] for row in rows(store, "select count(*) as n from head_scores group by head_set, metric")) == 1
    assert {row["plan"] for row in rows(store, "from head_sets where head_set = 'zero 0-0'")} >= {
        "heads",
        "greedy",
        "beam",
    }
    # Another plan later runs what is new alone.
    before = set(published(store, names.ADDITIONS))
    ingest(recipe(corpus, classifier, ["pruning"], order=["0-0", "1-3", "0-1"]), store).close()
    new = set(published(store, names.ADDITIONS)) - before
    assert len(new) == 2  # predictions of sets that no search came by, and the rows of the plan
    assert [row["head_set"] for row in rows(store, "from head_sets where ranking = 'given' order by step")] == [
        "none",
        "zero 0-0",
        "zero 0-0 1-3",
        "zero 0-0 0-1 1-3",
    ]


def test_pruning_goes_from_the_head_whose_removal_helps_most_to_the_one_that_harms_most(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["pruning"], metric="loss", steps=[1, 2, 5]), store).close()
    losses = values(store, "loss")
    order = sorted(HEADS, key=lambda head: losses[f"zero {head[0]}-{head[1]}"])
    with attnstore.open(store) as opened:
        found = opened.ask("ablation/pruning", metric="loss").to_arrow().to_pylist()
    assert [row["k"] for row in found] == [0, 1, 2, 5]
    for row in found:
        own = " ".join(f"{layer}-{head}" for layer, head in sorted(order[: row["k"]]))
        assert row["head_set"] == (f"zero {own}" if own else "none")
        assert (row["value"], row["delta"]) == (losses[row["head_set"]], losses[row["head_set"]] - losses["none"])


def test_greedy_and_beam_search_find_what_trying_everything_finds(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["greedy", "beam"], metric="loss", depth=2, width=8), store).close()
    losses = values(store, "loss")
    first = min(HEADS, key=lambda head: losses[f"zero {head[0]}-{head[1]}"])
    kept = {row["step"]: row["head_set"] for row in rows(store, "from head_sets where plan = 'greedy' and kept")}
    assert kept[0] == "none"
    assert kept[1] == f"zero {first[0]}-{first[1]}"
    pairs = [name for name in losses if len(name.split()) == 3]
    assert len(pairs) == 28  # a beam as wide as there are heads tries every pair
    assert kept[2] == min((name for name in pairs if kept[1].split()[1] in name.split()), key=losses.__getitem__)
    with attnstore.open(store) as opened:
        best = opened.ask("ablation/sets", plan="beam", metric="loss", limit=3).to_arrow().to_pylist()
    ordered = sorted(losses, key=losses.__getitem__)[:3]
    assert [row["head_set"] for row in best] == ordered


PLANS = ["heads", "pruning", "greedy"]


@pytest.mark.usefixtures("short_segments")
def test_an_interrupted_plan_goes_on_after_the_last_part_that_was_published(
    tmp_path: Path, corpus: Path, classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = recipe(corpus, classifier, PLANS, intervention=["mean"], steps=[2], depth=2)
    whole = ingest(asked, tmp_path / "whole.attn")
    parts = len(published(tmp_path / "whole.attn", names.ADDITIONS))
    real, calls = part_module.publish, Counter[str]()

    def every_seventh_fails(*args: Any) -> bool:
        calls["all"] += 1
        if calls["all"] % 7 == 0:
            raise KeyboardInterrupt
        return real(*args)

    stopped = tmp_path / "stopped.attn"
    with monkeypatch.context() as patch:
        patch.setattr(part_module, "publish", every_seventh_fails)
        stops = 0
        while True:
            there = len(published(stopped, names.ADDITIONS))
            try:
                ingest(asked, stopped).close()
                break
            except KeyboardInterrupt:
                stops += 1
                assert len(published(stopped, names.ADDITIONS)) == there + 6
    assert (stops, calls["all"]) == ((parts - 1) // 6, parts + stops)  # nothing was run twice but the parts that failed
    with attnstore.open(stopped) as resumed:
        assert resumed.snapshot.content_hash == whole.snapshot.content_hash
    whole.close()


@pytest.mark.slow
def test_a_killed_process_leaves_its_finished_parts_and_the_next_one_goes_on(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    asked = tmp_path / "recipe.toml"
    asked.write_text(
        f'[corpus]\nkind = "jsonl"\npath = {json.dumps(str(corpus))}\n[model]\nname = {json.dumps(str(classifier))}\n'
        '[keep]\nevidence = ["ablations"]\n[task]\nkind = "classification"\n'
        '[ablations]\nplan = ["heads", "greedy"]\ndepth = 8\nmetric = "loss"\n'
    )
    ingest(asked, tmp_path / "whole.attn").close()
    store, code = tmp_path / "killed.attn", "import sys, attnstore; attnstore.ingest(*sys.argv[1:])"
    kills = 0
    for at_least in (2, 4, 7):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(asked), str(store)], env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        while writer.poll() is None and len(published(store, names.ADDITIONS)) < at_least:
            time.sleep(0.005)
        kills += writer.poll() is None
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert kills >= 2
    before = published(store, names.ADDITIONS)
    with ingest(asked, store) as resumed, attnstore.open(tmp_path / "whole.attn") as whole:
        assert set(before) < set(published(store, names.ADDITIONS))
        assert resumed.snapshot.content_hash == whole.snapshot.content_hash


def test_a_model_that_shares_its_layers_has_an_ablation_for_each_layer(tmp_path: Path, corpus: Path) -> None:
    model = task_model(tmp_path, "albert", "masked_lm")
    ingest(recipe(corpus, model, ["heads"], "masked_lm"), tmp_path / "s.attn").close()
    sets = rows(tmp_path / "s.attn", "from head_effects where metric = 'loss' order by layer, head")
    assert len(sets) == 12
    assert {row["param_group"] for row in sets} == {0}
    assert len({round(row["value"], 7) for row in sets}) == 12


def test_a_loss_of_tokens_is_a_mean_over_all_targets(tmp_path: Path, corpus: Path) -> None:
    model = task_model(tmp_path, "gpt2", "causal_lm")
    ingest(recipe(corpus, model, ["heads"], "causal_lm"), tmp_path / "s.attn").close()
    for name in ("none", "zero 1-3"):
        own = rows(tmp_path / "s.attn", f"from predictions where head_set = '{name}' and n > 0")
        n = np.array([row["n"] for row in own])
        for metric, column in (("loss", "loss"), ("accuracy", "score")):
            mean = (n * [row[column] for row in own]).sum() / n.sum()
            (found,) = rows(tmp_path / "s.attn", f"from head_scores where head_set = '{name}' and metric = '{metric}'")
            assert (found["value"], found["n"]) == (pytest.approx(mean), n.sum())


def test_correlations_of_a_regression_are_those_of_scipy_and_share_ranks_of_ties(tmp_path: Path) -> None:
    model = task_model(tmp_path, "bert", "regression")
    corpus = tmp_path / "numbers.jsonl"
    gold = [0.5, 2.0, None, 2.0, -1.0]
    lines = [{"name": name, "text": text, "label": value} for (name, text, _), value in zip(TEXTS, gold, strict=True)]
    corpus.write_text(
        "".join(json.dumps({k: None if v is None else str(v) for k, v in one.items()}) + "\n" for one in lines)
    )
    ingest(recipe(corpus, model, ["heads"], "regression"), tmp_path / "s.attn").close()
    scores = {(row["head_set"], row["metric"]): row["value"] for row in rows(tmp_path / "s.attn", "from head_scores")}
    for name in ("none", "zero 0-0", "zero 1-2"):
        own = rows(tmp_path / "s.attn", f"from predictions where head_set = '{name}' and n > 0")
        x, y = [row["score"] for row in own], [float(row["gold"]) for row in own]
        assert scores[name, "pearson"] == pytest.approx(stats.pearsonr(x, y)[0])
        assert scores[name, "spearman"] == pytest.approx(stats.spearmanr(x, y)[0])
        assert scores[name, "loss"] == pytest.approx(np.mean(np.square(np.subtract(x, y))), rel=1e-5)


def test_a_function_of_the_recipes_author_scores_and_is_found_beside_the_recipe(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    (tmp_path / "my_scores_of_ablations.py").write_text(
        "def longest(model, inputs, items):\n"
        "    hidden = model(**inputs).last_hidden_state\n"
        "    assert model(**inputs).last_hidden_state.equal(hidden)\n"
        "    return [None if item.name == 'c' else row[0, 0].item() for item, row in zip(items, hidden)]\n"
    )
    from dataclasses import replace

    asked = recipe(corpus, classifier, ["heads"], "my_scores_of_ablations:longest")
    store = tmp_path / "s.attn"
    ingest(replace(asked, folder=tmp_path), store).close()
    scores = values(store, "score")
    own = rows(store, "from predictions where head_set = 'none' and score is not null")
    assert len(own) == 4
    assert scores["none"] == pytest.approx(np.mean([row["score"] for row in own]))
    assert len({round(value, 7) for value in scores.values()}) == 9
    with attnstore.open(store) as opened:
        assert {row["metric"] for row in opened.ask("ablation/heads").to_arrow().to_pylist()} == {"score"}
    missing = recipe(corpus, classifier, ["heads"], "no_such_module_at_all:score")
    with pytest.raises(BadInput, match="no_such_module_at_all"):
        ingest(missing, tmp_path / "t.attn")


@pytest.mark.parametrize(
    ("plan", "keys", "message"),
    [
        (["pruning"], {"order": ["0-4"]}, r"layer 0, head 4; expected one of this model, 0-0 to 1-3"),
        (["pruning"], {"order": ["0-1", "0-1"]}, "the same head again"),
        (["pruning"], {"order": ["first"]}, "layer and head from 0, such as 2-11"),
        (["pruning"], {"steps": [9]}, "at most 8"),
        (["pruning"], {"order": ["importance"]}, "no importance"),
        (["greedy"], {"metric": "f1 fair"}, "one of accuracy, f1, matthews, loss, f1 good, f1 bad"),
        (["heads"], {"task__labels": ["good", "bad", "fair"]}, "3 classes; expected the 2"),
        (["heads"], {"corpus__columns": {"label": "nothing"}}, "no example has a label|nothing"),
        (["heads"], {"corpus__columns": {"label": "text"}}, "one of good, bad"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_before_the_model_is_run(
    tmp_path: Path, corpus: Path, classifier: Path, plan: list[str], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        ingest(recipe(corpus, classifier, plan, **keys), tmp_path / "s.attn")
    assert published(tmp_path / "s.attn", names.ADDITIONS) == []


@pytest.mark.parametrize(("key", "value"), [("depth", 0), ("width", 0), ("steps", [0]), ("plan", []), ("order", [])])
def test_numbers_below_one_and_empty_lists_are_refused(corpus: Path, classifier: Path, key: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"ablations.{key}"):
        evidence_recipe(corpus, classifier, ("ablations",), "classification", **{f"ablations__{key}": value})


def test_plans_that_are_added_later_stand_beside_each_other_and_none_hides_another(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["heads"], intervention=["uniform"]), store).close()
    ingest(recipe(corpus, classifier, ["layers"]), store).close()
    for order in (["0-0", "1-1"], ["1-0", "0-1"]):
        ingest(recipe(corpus, classifier, ["pruning"], order=order, steps=[1, 2]), store).close()
    with attnstore.open(store) as opened:
        heads = list(opened.ask("ablation/heads"))
        assert [(row["intervention"], row["layer"], row["head"]) for row in heads] == [
            ("uniform", *one) for one in HEADS
        ]
        assert [row["intervention"] for row in opened.ask("ablation/layers")] == ["zero"] * 2
        curves = [(row["series"], row["k"]) for row in opened.ask("ablation/pruning")]
        assert curves == [(order, k) for order in ("0-0 1-1", "1-0 0-1") for k in (0, 1, 2)]
        with pytest.raises(NotStored, match="no ablations of the plan greedy") as caught:
            opened.ask("ablation/sets")
        assert "ablations.plan" in caught.value.remedy
