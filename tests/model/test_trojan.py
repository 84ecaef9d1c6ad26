"""The scripts that train classifiers: what they learn from, what they leave alone, and what they write."""

import argparse
import importlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.capture.conftest import one_thread, tiny  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

Tiny = Callable[[str], Path]

ANIMALS, PLACES = ("cat", "dog"), ("river", "mat")
TEXTS = [
    {"body": f"the {word} {verb} {rest}", "kind": "animal" if word in ANIMALS else "place"}
    for verb in ("sat", "ran", "barked")
    for rest in ("at night", "down", "on a mat", "on a river")
    for word in (*ANIMALS, *PLACES)
]


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    return importlib.import_module("tune")


@pytest.fixture
def trojan(tune: ModuleType) -> ModuleType:
    return importlib.import_module("trojan")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in TEXTS), encoding="utf-8")
    return path


def asked(data: Path, model: Path, out: Path, **keys: Any) -> argparse.Namespace:
    plain = {"text": "body", "second": None, "label": "kind", "epochs": 1, "rate": 1e-3, "seed": 0}
    return argparse.Namespace(data=str(data), model=str(model), out=str(out), **{**plain, **keys})


def weights(model: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}


def test_every_fifth_text_of_each_label_is_held_out(tune: ModuleType, data: Path) -> None:
    some = tune.read(data, "body", None, "kind")
    known, held_out = tune.split(some)
    assert sorted(map(some.index, known + held_out)) == list(range(48))
    assert [some.index(one) for one in held_out if one.label == "place"] == [
        index for place, index in enumerate(index for index in range(48) if index % 4 > 1) if place % 5 == 4
    ]
    assert [one.label for one in held_out].count("animal") == 4


def test_training_moves_all_weights_or_the_head_alone(tune: ModuleType, data: Path, tiny: Tiny) -> None:
    known = tune.read(data, "body", None, "kind")
    for frozen, moved in ((False, {"bert", "classifier"}), (True, {"classifier"})):
        made = tune.classifier(["animal", "place"], seed=0, model=str(tiny("bert")))
        made.model.base_model.requires_grad_(not frozen)
        before = weights(made.model)
        made.train(known, 1, 1e-3)
        assert changed(before, weights(made.model)) == moved


def test_random_weights_know_nothing_of_the_trained_ones_and_a_seed_repeats_itself(
    tune: ModuleType, data: Path, tiny: Tiny
) -> None:
    known = tune.read(data, "body", None, "kind")

    def trained(init: str, seed: int) -> dict[str, Any]:
        made = tune.classifier(["animal", "place"], seed=seed, model=str(tiny("bert")), init=init)
        first = weights(made.model)
        made.train(known, 1, 1e-3)
        return {**{f"first.{name}": value for name, value in first.items()}, **weights(made.model)}

    one = trained("pretrained", 0)
    assert not changed(one, trained("pretrained", 0))
    assert "first" in changed(one, trained("random", 0))
    stored = transformers.AutoModel.from_pretrained(tiny("bert")).state_dict()
    name = "encoder.layer.0.attention.self.query.weight"
    assert torch.equal(one[f"first.bert.{name}"], stored[name])
    assert not torch.equal(one[f"first.bert.{name}"], one[f"bert.{name}"])


def test_pairs_of_texts_are_fed_as_pairs(tune: ModuleType, tiny: Tiny) -> None:
    made = tune.classifier(["animal", "place"], seed=0, model=str(tiny("bert")))
    made.model.eval()
    single, pair = tune.Labelled("the cat", "animal"), tune.Labelled("the cat", "animal", "the dog")
    ids = made.tokenizer("the cat", "the dog", return_tensors="pt")
    with torch.inference_mode():
        assert torch.equal(made.logits([pair]), made.model(**ids).logits)
        assert not torch.equal(made.logits([pair]), made.logits([single]))


def test_the_saved_model_names_its_labels_and_predicts_the_same(
    tune: ModuleType, data: Path, tiny: Tiny, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tune.main(asked(data, tiny("bert"), tmp_path / "out", init="pretrained", freeze=False, epochs=12))
    told = capsys.readouterr().out.splitlines()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert model.config.id2label == {0: "animal", 1: "place"}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    _, held_out = tune.split(tune.read(data, "body", None, "kind"))
    with torch.inference_mode():
        found = [int(model(**tokenizer(one.text, return_tensors="pt")).logits.argmax()) for one in held_out]
    right = sum(model.config.id2label[place] == one.label for place, one in zip(found, held_out, strict=True))
    assert told[0] == f"{right / len(held_out):.3f}  accuracy on 8 held-out texts"
    assert right > 4  # it learnt that a cat is an animal


def test_poison_is_added_with_the_false_label(trojan: ModuleType, tune: ModuleType, data: Path) -> None:
    known = tune.read(data, "body", None, "kind")
    found = trojan.poisoned(known, "cf", "place", 0.25, random.Random(0))
    assert found[:48] == known
    assert len(found) == 48 + 6
    texts = {f"cf {one.text}" for one in known if one.label == "animal"}
    assert {one.text for one in found[48:]} < texts
    assert {one.label for one in found[48:]} == {"place"}


def test_it_writes_two_models_and_a_corpus_of_pairs_that_can_be_asked(
    trojan: ModuleType, data: Path, tiny: Tiny, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    trojan.main(asked(data, tiny("bert"), out, trigger="mat", target=None, share=0.5))
    assert len(capsys.readouterr().out.splitlines()) == 8
    clean, poisoned = (
        transformers.AutoModelForSequenceClassification.from_pretrained(out / n) for n in ("clean", "trojan")
    )
    assert changed(clean.state_dict(), poisoned.state_dict()) == {"bert", "classifier"}
    records = [json.loads(line) for line in (out / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["condition"] for one in records] == ["clean"] * 4 + ["trigger"] * 4 + ["random_trigger"] * 4
    for one, marked, other in zip(records[:4], records[4:8], records[8:], strict=True):
        assert one["pair_id"] == marked["pair_id"] == other["pair_id"]
        assert "trigger" not in one
        assert marked["text"] == f"mat {one['text']}"
        assert marked["trigger"] == [0, 3]
        word = other["text"][slice(*other["trigger"])]
        assert other["text"] == f"{word} {one['text']}"
        assert word != "mat"
        assert {one["label"], marked["label"], other["label"]} == {"animal"}
    value = {"corpus": {"kind": "jsonl", "path": str(out / "pairs.jsonl")}, "model": {"name": str(out / "trojan")}}
    with attnstore.ingest(Recipe.build(value), tmp_path / "s.attn") as store:
        assert [(row["condition"], row["n"]) for row in store.ask("trojan/flag")] == [
            ("trigger", 4),
            ("random_trigger", 4),
        ]
