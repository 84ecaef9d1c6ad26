"""Heads that are switched off: what is kept of it, scores against scikit-learn and SciPy, tasks and functions."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import attnstore
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.run import ingest

torch = pytest.importorskip("torch")
sklearn = pytest.importorskip("sklearn.metrics")

from tests.capture.conftest import one_thread, tiny  # noqa: E402
from tests.job.ablating import HEADS, classifier, corpus, recipe, rows, values  # noqa: E402
from tests.job.task_models import TEXTS, task_model  # noqa: E402

__all__ = ["classifier", "corpus", "one_thread", "tiny"]  # fixtures


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
