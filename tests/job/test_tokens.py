"""Tokens of a corpus's own go through a whole ingest: what is stored are the model's own maps of these tokens."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.plan import make_plan
from attnstore.job.probe import probe
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.capture.conftest import one_thread, tiny  # noqa: E402

__all__ = ["one_thread", "tiny"]  # fixtures

Tiny = Callable[[str], Path]
LONG = {"name": "long", "text": "ranat nightdown a", "tokens": ["ran", "at", "night", "down", "a"]}


def recipe(folder: Path, model: Path, *records: dict[str, Any], **keys: Any) -> Recipe:
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    value = {"corpus": {"kind": "tokens", "path": str(path)}, "model": {"name": str(model)}}
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})


def listed(store: attnstore.Store, statement: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in store.sql(statement)]


def test_stored_maps_are_the_eager_maps_of_the_given_tokens(tmp_path: Path, tiny: Tiny) -> None:
    place = tiny("bert")
    ids = transformers.AutoTokenizer.from_pretrained(place).get_vocab()
    records = [
        {"name": "part", "text": "the cats, down", "tokens": ["the", "down"]},
        {"name": "split", "tokens": ["cat", "##s", "ran", "##s"]},
        {"name": "pair", "tokens": ["ran", "at"], "second": "at", "second_ids": [ids["at"]]},
        {"name": "none", "tokens": []},
    ]
    fed = {
        "part": "[CLS] the down [SEP]",
        "split": "[CLS] cat ##s ran ##s [SEP]",
        "pair": "[CLS] ran at [SEP] at [SEP]",
    }
    model = transformers.BertModel.from_pretrained(place, attn_implementation="eager").eval()
    with attnstore.ingest(recipe(tmp_path, place, *records, keep__precision="exact"), tmp_path / "s.attn") as store:
        assert listed(store, "select name from examples order by example") == [(name,) for name in fed]
        for number, (name, tokens) in enumerate(fed.items()):
            inputs = {"input_ids": torch.tensor([[ids[token] for token in tokens.split(" ")]])}
            if name == "pair":
                inputs["token_type_ids"] = torch.tensor([[0, 0, 0, 0, 1, 1]])
            with torch.inference_mode():
                own = torch.stack(model(**inputs, output_attentions=True).attentions)[:, 0].numpy()
            assert np.abs(store.attention(number).to_numpy() - own).max() <= 2e-6
        assert listed(store, "select name, reason from skipped") == [("none", "its text is empty")]
    assert verify(tmp_path / "s.attn", deep=True) == []


def test_words_have_the_tokens_that_lie_in_them(tmp_path: Path, tiny: Tiny) -> None:
    record = {"text": "rivers ran", "tokens": ["river", "##s", "ran"], "words": ["rivers", "ran"]}
    chosen = recipe(tmp_path, tiny("bert"), record, words__source="gold")
    with attnstore.ingest(chosen, tmp_path / "s.attn") as store:
        assert listed(store, "select text, word, start_char, end_char from tokens order by token") == [
            ("[CLS]", None, None, None),
            ("river", 0, 0, 5),
            ("##s", 0, 5, 6),
            ("ran", 1, 7, 10),
            ("[SEP]", None, None, None),
        ]
        assert listed(store, "select form, n_tokens, aligned from words order by word") == [
            ("rivers", 2, "exact"),
            ("ran", 1, "exact"),
        ]


@pytest.mark.parametrize(
    ("long", "expected"),
    [
        # Three tokens and two special ones fit into five; the last white space that fits lies before "night".
        ("window", [("long#1", "ranat", "window", 4), ("long#2", "nightdown a", "window", 5)]),
        ("truncate", [("long", "ranat night", "truncated", 5)]),
        ("skip", []),
    ],
)
def test_long_inputs_are_cut_between_the_given_tokens(
    tmp_path: Path,
    tiny: Tiny,
    long: str,
    expected: list[tuple[str, str, str, int]],
) -> None:
    chosen = recipe(tmp_path, tiny("bert"), LONG, {"tokens": ["a"]}, encode__max_length=5, encode__long=long)
    with attnstore.ingest(chosen, tmp_path / "s.attn") as store:
        found = listed(store, "select name, text, cut, n_tokens from examples order by example")
        assert found == [*expected, ("own:2", "a", "whole", 3)]
        skipped = [("long", "7 tokens, more than 5")] if long == "skip" else []
        assert listed(store, "select name, reason from skipped") == skipped
        # Every token spells what stands at its characters.
        places = "select substr(e.text, t.start_char + 1, t.end_char - t.start_char) = t.text from tokens t"
        assert set(listed(store, f"{places} join examples e using (example) where t.special is null")) == {(True,)}


def test_other_tokens_of_the_same_texts_are_another_corpus(tmp_path: Path, tiny: Tiny) -> None:
    from attnstore.job.model_source import ModelSource

    def store_id(*tokens: str) -> str:
        chosen = recipe(tmp_path, tiny("bert"), {"text": "rivers", "tokens": list(tokens)})
        return make_plan(chosen, ModelSource(chosen, "cpu")).info.store_id

    assert store_id("river", "##s") == store_id("river", "##s") != store_id("r", "##i", "##v", "##e", "##r", "##s")


def test_words_cannot_be_joined_into_a_text_whose_tokens_are_given(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"joined_words.*the tokens as the corpus gives them"):
        recipe(tmp_path, tmp_path, words__source="gold", words__feed="joined_words")


def test_a_model_that_reads_a_target_text_is_refused(tmp_path: Path, tiny: Tiny) -> None:
    chosen = recipe(tmp_path, tiny("t5"), {"tokens": ["\u2581the"]})
    with pytest.raises(BadInput, match=r"no target text.*a model that reads one text"):
        attnstore.ingest(chosen, tmp_path / "s.attn")


def test_doctor_checks_models_with_and_without_a_tokenizer_of_texts(tmp_path: Path, tiny: Tiny) -> None:
    place = tmp_path / "symbols"
    place.mkdir()
    for name in ("config.json", "model.safetensors"):
        (place / name).write_bytes((tiny("bert") / name).read_bytes())
    (place / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nC\n")
    for model in (place, tiny("bert"), tiny("t5"), tiny("gpt2")):
        assert "largest difference" in probe(str(model))
