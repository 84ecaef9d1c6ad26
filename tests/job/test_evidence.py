"""Evidence is added part by part, at once or later, goes on where it stopped, and refuses what does not fit."""

from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.errors import BadInput, NotCaptured
from attnstore.format import names
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.run import ingest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from attnstore.job.evidence import part as part_module  # noqa: E402
from tests.capture.conftest import one_thread, tiny  # noqa: E402
from tests.job.task_models import LABELS, TEXTS, evidence_recipe, labelled, task_model  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

BOTH = ("value_norms", "predictions")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return task_model(tmp_path_factory.mktemp("models"), "bert", "classification")


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several segments from five short texts."""
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    with attnstore.open(store) as opened:
        return opened.sql(sql).to_arrow().to_pylist()


def test_predictions_are_those_of_the_model_itself(tmp_path: Path, corpus: Path, classifier: Path) -> None:
    ingest(evidence_recipe(corpus, classifier, ("predictions",), "classification"), tmp_path / "s.attn").close()
    found = {
        row["name"]: row for row in rows(tmp_path / "s.attn", "from stored.predictions join examples using (example)")
    }
    model = transformers.BertForSequenceClassification.from_pretrained(classifier).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier)
    for name, text, label in TEXTS:
        with torch.inference_mode():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        row = found[name]
        assert row["head_set"] == "none"
        assert row["logits"] == pytest.approx(logits.tolist(), abs=1e-5)
        assert row["predicted"] == LABELS[int(logits.argmax())]
        if label is None:
            assert (row["n"], row["loss"]) == (0, None)
        else:
            loss = -torch.log_softmax(logits, 0)[LABELS.index(label)].item()
            assert (row["n"], row["loss"]) == (1, pytest.approx(loss, abs=1e-5))
    assert list(verify(tmp_path / "s.attn", deep=True)) == []


@pytest.mark.usefixtures("short_segments")
def test_evidence_that_is_asked_for_later_is_the_same_as_at_once(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    at_once = ingest(evidence_recipe(corpus, classifier, BOTH, "classification"), tmp_path / "once.attn")
    ingest(evidence_recipe(corpus, classifier, ()), tmp_path / "later.attn").close()
    ingest(evidence_recipe(corpus, classifier, BOTH[:1]), tmp_path / "later.attn").close()
    later = ingest(evidence_recipe(corpus, classifier, BOTH, "classification"), tmp_path / "later.attn")
    assert later.snapshot.content_hash == at_once.snapshot.content_hash
    assert len(published(tmp_path / "later.attn", names.ADDITIONS)) == 2 * len(later.info.segments) > 2
    assert later.info.recipe["keep"]["evidence"] == []  # what was asked for first; each addition says its own
    at_once.close()
    later.close()


@pytest.mark.usefixtures("short_segments")
def test_an_interrupted_run_keeps_the_parts_that_it_published_and_goes_on_after_them(
    tmp_path: Path, corpus: Path, classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = evidence_recipe(corpus, classifier, BOTH, "classification")
    whole = ingest(recipe, tmp_path / "whole.attn")
    real, calls = part_module.publish, []

    def stop_at_the_second(*args: Any) -> bool:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(part_module, "publish", stop_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            ingest(recipe, tmp_path / "stopped.attn")
    assert published(tmp_path / "stopped.attn", names.ADDITIONS) == ["value-norms.000000"]
    resumed = ingest(recipe, tmp_path / "stopped.attn")
    assert resumed.snapshot.content_hash == whole.snapshot.content_hash
    whole.close()
    resumed.close()


def test_other_parameters_than_those_of_the_evidence_that_is_there_are_refused(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    ingest(evidence_recipe(corpus, classifier, ("predictions",), "classification"), tmp_path / "s.attn").close()
    other = evidence_recipe(corpus, classifier, ("predictions",), "classification", task__labels=["x", "y"])
    with pytest.raises(BadInput, match=r"made with task.labels = \[\].*\['x', 'y'\]"):
        ingest(other, tmp_path / "s.attn")


@pytest.mark.parametrize(
    ("evidence", "task", "keys", "message"),
    [
        (("predictions",), "", {}, "without a task"),
        (("prediction",), "classification", {}, "one of weights, value_norms"),
        (("predictions",), "clasification", {}, "Did you mean classification"),
        (("value_norms",), "", {"corpus__kind": "arrays"}, "come without their model"),
    ],
)
def test_a_recipe_whose_evidence_cannot_be_is_refused(
    corpus: Path, classifier: Path, evidence: tuple[str, ...], task: str, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        evidence_recipe(corpus, classifier, evidence, task, **keys)


def test_a_model_without_the_head_of_the_task_is_refused_and_the_maps_stay(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    recipe = evidence_recipe(corpus, classifier, ("predictions",), "masked_lm")
    with pytest.raises(BadInput, match="those of the task's head too"):
        ingest(recipe, tmp_path / "s.attn")
    with attnstore.open(tmp_path / "s.attn") as store:
        assert store.info.n_examples == len(TEXTS)


def test_a_label_that_is_no_class_is_refused_by_name(tmp_path: Path, corpus: Path, classifier: Path) -> None:
    recipe = evidence_recipe(corpus, classifier, ("predictions",), "classification", task__labels=["good", "poor"])
    with pytest.raises(BadInput, match=r"the label 'bad'.*one of good, poor"):
        ingest(recipe, tmp_path / "s.attn")
    assert published(tmp_path / "s.attn", names.ADDITIONS) == []


def test_an_architecture_whose_heads_cannot_be_told_apart_is_refused(tmp_path: Path, corpus: Path, tiny: Any) -> None:
    with pytest.raises(NotCaptured, match="move values"):
        ingest(evidence_recipe(corpus, tiny("xlnet"), ("value_norms",)), tmp_path / "s.attn")


def test_a_decoder_is_scored_at_its_last_token_whatever_it_is_batched_with(tmp_path: Path, corpus: Path) -> None:
    # The head looks for the last token that is not config.pad_token_id; the tokenizer has no padding token at all.
    folder = task_model(tmp_path, "gpt2", "classification", pad_token_id=2)
    ingest(evidence_recipe(corpus, folder, ("predictions",), "classification"), tmp_path / "s.attn").close()
    found = {
        row["name"]: row["logits"]
        for row in rows(tmp_path / "s.attn", "from predictions join examples using (example)")
    }
    model = transformers.GPT2ForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for name, text, _ in TEXTS:
        with torch.inference_mode():
            alone = model(**tokenizer(text, return_tensors="pt")).logits[0]
        assert found[name] == pytest.approx(alone.tolist(), abs=1e-5)


@pytest.mark.parametrize("evidence", ["gradients", "importance", "ablations"])
def test_what_needs_labels_is_refused_where_no_example_has_one(tmp_path: Path, classifier: Path, evidence: str) -> None:
    (tmp_path / "bare.jsonl").write_text('{"text": "the cat sat"}\n{"text": "rivers"}\n')
    recipe = evidence_recipe(tmp_path / "bare.jsonl", classifier, (evidence,), "classification")
    for _ in range(2):  # nothing that was published stands in the way of the refusal
        with pytest.raises(BadInput, match="no example has a label"):
            ingest(recipe, tmp_path / "s.attn")
    assert published(tmp_path / "s.attn", names.ADDITIONS) == []


def test_gradients_of_a_similarity_are_refused(corpus: Path, classifier: Path) -> None:
    with pytest.raises(BadInput, match="feeds the texts of a pair apart"):
        evidence_recipe(corpus, classifier, ("predictions", "gradients"), "similarity")
