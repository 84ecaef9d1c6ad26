"""Evidence from gradients in a store: its rows and arrays are those of the model, and can be read, checked, refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput, NotCaptured, NotStored
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.run import ingest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from attnstore.capture.evidence import gradients as gradients_module  # noqa: E402
from tests.capture.conftest import one_thread  # noqa: E402
from tests.job.task_models import LABELS, TEXTS, evidence_recipe, labelled, task_model  # noqa: E402

__all__ = ["one_thread"]  # a fixture

ALL = ("gradients", "gradient_maps", "integrated_gradients", "importance")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gradients")


@pytest.fixture(scope="module")
def corpus(place: Path) -> Path:
    return labelled(place)


@pytest.fixture(scope="module")
def classifier(place: Path) -> Path:
    return task_model(place, "bert", "classification")


@pytest.fixture(scope="module")
def stored(place: Path, corpus: Path, classifier: Path) -> Path:
    """Several segments with all of ALL."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "SEGMENT_TOKENS", 20)
        ingest(evidence_recipe(corpus, classifier, ALL, "classification"), place / "all.attn").close()
    return place / "all.attn"


@pytest.fixture(scope="module")
def plain(classifier: Path) -> dict[str, Any]:
    """Of each labelled text the maps and the gradients of its loss by them [layer, head, query, key]."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    model = transformers.BertForSequenceClassification.from_pretrained(classifier, attn_implementation="eager").eval()
    found = {}
    for name, text, label in TEXTS:
        if label is None:
            continue
        output = model(**tokenizer(text, return_tensors="pt"), output_attentions=True)
        for weights in output.attentions:
            weights.retain_grad()
        torch.nn.functional.cross_entropy(output.logits, torch.tensor([LABELS.index(label)])).backward()
        maps = np.concatenate([weights.detach().numpy() for weights in output.attentions])
        found[name] = (maps, np.concatenate([weights.grad.numpy() for weights in output.attentions]))
        model.zero_grad()
    return found


def column(found: Any) -> list[Any]:
    """The first column of an answer."""
    return [next(iter(row.values())) for row in found]


def test_a_store_with_gradients_is_sound(stored: Path) -> None:
    assert list(verify(stored, deep=True)) == []
    with attnstore.open(stored) as store:
        assert len(store.info.segments) > 1
        assert len(store.contents.additions) == len(ALL) * len(store.info.segments)


def test_stored_gradients_are_those_that_autograd_gives_for_each_text_alone(stored: Path, plain: Any) -> None:
    with attnstore.open(stored) as store:
        for name, (_, expected) in plain.items():
            found = store.attention(name, weights="gradient")
            assert (found.of, found.dims) == ("gradient", ("layer", "head", "query", "key"))
            assert found.keys == store.attention(name).keys
            np.testing.assert_allclose(found.weights, expected, atol=2e-6)
            part = store.attention(name, layer=1, head=[2, 0], specials=False, weights="gradient")
            np.testing.assert_array_equal(part.weights, found.weights[1][[2, 0], 1:-1, 1:-1])


def test_sums_by_class_are_plain_sums_of_the_gradients(stored: Path, plain: Any) -> None:
    with attnstore.open(stored) as store:
        facts = store.sql("from gradient_facts join examples using (example)").to_arrow().to_pylist()
        for name, (maps, gradient) in plain.items():
            classes = [
                row["special"] or ("punct" if row["punct"] else "other")
                for row in store.sql(
                    "select special, punct from tokens join examples using (example) where name = $name order by token",
                    name=name,
                )
            ]
            own = [row for row in facts if row["name"] == name]
            assert len(own) == len(set(classes)) ** 2 * 8
            for row in own:
                queries, keys = (
                    np.array([one == row[side] for one in classes]) for side in ("query_class", "key_class")
                )
                assert row["n_pairs"] == queries.sum() * keys.sum() == row["n_queries"] * row["n_keys"]
                block = np.ix_([row["layer"]], [row["head"]], queries, keys)
                for column, values in (
                    ("abs_gradient", np.abs(gradient)),
                    ("gradient_weight", maps * gradient),
                    ("abs_gradient_weight", np.abs(maps * gradient)),
                    ("weight", maps),
                ):
                    assert row[column] == pytest.approx(values[block].sum(), abs=2e-5)


def test_importance_is_the_sum_of_weights_times_gradients(stored: Path, plain: Any) -> None:
    with attnstore.open(stored) as store:
        rows = store.sql("from importance_facts join examples using (example)").to_arrow().to_pylist()
    assert len(rows) == 8 * len(plain)
    for row in rows:
        maps, gradient = plain[row["name"]]
        by_token = (maps * gradient)[row["layer"], row["head"]].sum(axis=1)
        assert row["importance"] == pytest.approx(by_token.sum(), abs=2e-5)
        assert row["importance_abs_tokens"] == pytest.approx(np.abs(by_token).sum(), abs=2e-5)
        assert row["n_tokens"] == maps.shape[2]


def test_rows_of_attributions_are_the_largest_and_the_sum_of_the_stored_arrays(stored: Path) -> None:
    with attnstore.open(stored) as store:
        rows = store.sql("from attribution_facts").to_arrow().to_pylist()
        assert len(rows) == 8 * len(TEXTS)  # an example without a label has a predicted class
        for row in rows:
            own = store.attention(row["example"], layer=row["layer"], head=row["head"], weights="integrated").weights
            assert row["max"] == pytest.approx(own.max(), abs=1e-6)
            assert row["sum"] == pytest.approx(own.sum(), abs=1e-5)


def test_an_example_without_a_label_has_no_rows_and_its_gradients_are_refused(stored: Path) -> None:
    with attnstore.open(stored) as store:
        for table in ("gradient_facts", "importance_facts"):
            names = column(store.sql(f"select distinct name from {table} join examples using (example)"))
            assert sorted(names) == [name for name, _, label in TEXTS if label]
        with pytest.raises(NotStored, match="an example with a label or target"):
            store.attention("c", weights="gradient")


@pytest.mark.parametrize(
    ("keys", "message"),
    [({"level": "word"}, 'level="word"'), ({"renormalise": True}, "renormalise=True")],
)
def test_derivatives_are_not_read_as_weights(stored: Path, keys: Any, message: str) -> None:
    with attnstore.open(stored) as store, pytest.raises(BadInput, match=message):
        store.attention("a", weights="gradient", **keys)


def test_a_store_without_gradients_says_how_it_gets_them(tmp_path: Path, corpus: Path, classifier: Path) -> None:
    with ingest(evidence_recipe(corpus, classifier, ()), tmp_path / "s.attn") as store:
        with pytest.raises(NotStored, match=r'keep\.evidence=\["gradient_maps"\]'):
            store.attention(0, weights="gradient")
        with pytest.raises(NotStored, match=r'keep\.evidence=\["integrated_gradients"\]'):
            store.attention(0, weights="integrated")
        with pytest.raises(NotStored, match=r'keep\.evidence=\["gradients"\]'):
            store.ask("gradients/classes")


@pytest.mark.parametrize("maps", ["none", "topk:2"])
def test_arrays_beside_maps_need_every_cell_of_the_maps(
    tmp_path: Path, corpus: Path, classifier: Path, maps: str
) -> None:
    recipe = evidence_recipe(corpus, classifier, ("gradients", "gradient_maps"), "classification", keep__maps=maps)
    with pytest.raises(BadInput, match=rf'keep\.maps = "{maps}"'):
        ingest(recipe, tmp_path / "s.attn")
    with attnstore.open(tmp_path / "s.attn") as store:  # what needs no cells is there
        assert {row["n"] for row in store.ask("gradients/classes") if row["key_class"] == "cls"} == {4}


def _drop_shape(root: Path) -> None:
    import json

    (path,) = (root / "additions").glob("gradient-maps.000000/maps.zarr/encoder_gradient/zarr.json")
    value = json.loads(path.read_text())
    value["shape"][2] += 1
    path.write_text(json.dumps(value))


def _drop_array(root: Path) -> None:
    shutil.rmtree(root / "additions/gradient-maps.000000/maps.zarr/encoder_gradient")


@pytest.mark.parametrize(("damage", "found"), [(_drop_shape, "of shape"), (_drop_array, "it is missing")])
def test_verify_finds_arrays_that_do_not_fit_the_segment(
    tmp_path: Path, stored: Path, damage: Callable[[Path], None], found: str
) -> None:
    from attnstore.format.deep import check_added_maps
    from attnstore.format.manifest import read_store, read_unit

    root = tmp_path / "s.attn"
    shutil.copytree(stored, root)
    unit = read_unit(root, "additions/gradient-maps.000000")
    assert list(check_added_maps(root / unit.folder, unit, read_store(root), deep=True)) == []
    damage(root)
    (broken,) = check_added_maps(root / unit.folder, unit, read_store(root), deep=True)
    assert broken[0] == "F8"
    assert found in broken[2]


def test_a_gradient_that_is_no_number_becomes_null_and_is_counted(
    tmp_path: Path, corpus: Path, classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = gradients_module.torch.autograd.grad

    def broken(total: Any, outputs: Any, **keys: Any) -> Any:
        found = real(total, outputs, **keys)
        found[1][1, 0, 0, 0] = float("inf")  # layer 1, the second example of the batch: d
        return found

    monkeypatch.setattr(gradients_module.torch.autograd, "grad", broken)
    recipe = evidence_recipe(corpus, classifier, ("gradients", "gradient_maps", "importance"), "classification")
    with ingest(recipe, tmp_path / "s.attn") as store:
        (second,) = column(store.sql("select example from examples order by n_tokens, example limit 1 offset 1"))
        assert column(store.sql("select count(abs_gradient) from gradient_facts where example = $e", e=second)) == [0]
        rows = store.ask("gradients/classes").to_arrow().to_pylist()
        assert {(row["n"], row["not_finite"]) for row in rows if row["key_class"] == "cls"} == {(3, 1)}
        found = store.ask("gradients/importance").to_arrow().to_pylist()
        assert {(row["layer"], row["n"], row["not_finite"]) for row in found} == {(0, 4, 0), (1, 3, 1)}
        assert store.attention(second, layer=0, weights="gradient").weights.shape[0] == 4
        with pytest.raises(NotStored, match="all finite"):
            store.attention(second, layer=1, weights="gradient")


def test_causal_maps_have_gradients_only_where_a_query_sees_the_key(tmp_path: Path, corpus: Path) -> None:
    model = task_model(tmp_path, "gpt2", "causal_lm")
    recipe = evidence_recipe(corpus, model, ("gradients", "gradient_maps"), "causal_lm")
    with ingest(recipe, tmp_path / "s.attn") as store:
        assert list(verify(tmp_path / "s.attn", deep=True)) == []
        gradient = store.attention(0, weights="gradient").weights
        assert not np.triu(gradient, 1).any()
        assert np.tril(gradient, -1).any()
        n = gradient.shape[2]
        (pairs,) = set(column(store.sql("select n_pairs from gradient_facts where example = 0")))
        assert pairs == n * (n + 1) // 2


def test_contributions_are_kept_for_a_model_that_has_them_and_refused_for_another(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    with pytest.raises(NotCaptured, match="no norm before the heads"):
        ingest(evidence_recipe(corpus, classifier, ("logit_contributions",), "classification"), tmp_path / "b.attn")
    model = task_model(tmp_path, "gpt2", "classification")
    recipe = evidence_recipe(corpus, model, ("logit_contributions", "predictions"), "classification")
    with ingest(recipe, tmp_path / "s.attn") as store:
        rows = (
            store.sql("""
            from logit_contributions join examples using (example) join stored.predictions using (example)
        """)
            .to_arrow()
            .to_pylist()
        )
        assert len(rows) == 8 * len(TEXTS)
        for row in rows:
            assert (row["true_class"] is None) == (row["label"] is None)
            if row["label"] == row["predicted"]:
                assert row["true_class"] == row["predicted_class"]
        assert {row["class"] for row in store.ask("classes/contributions")} == set(LABELS)


@pytest.mark.parametrize("evidence", ["integrated_gradients", "logit_contributions"])
def test_evidence_about_a_class_needs_a_task_with_classes(tmp_path: Path, corpus: Path, evidence: str) -> None:
    model = task_model(tmp_path, "gpt2", "causal_lm")
    with pytest.raises(BadInput, match="a task without classes"):
        ingest(evidence_recipe(corpus, model, (evidence,), "causal_lm"), tmp_path / "s.attn")
