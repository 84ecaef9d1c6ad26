"""Triggers go through a whole ingest: which tokens they are, in whole texts, windows and joined words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.job.annotate import annotate_words
from attnstore.job.plan import make_plan
from attnstore.job.recipe import Recipe
from attnstore.job.sources import source_for

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.capture.conftest import one_thread, tiny

__all__ = ["one_thread", "tiny"]  # fixtures

Tiny = Callable[[str], Path]

# Tokens [CLS] ran ##ing the cat sat [SEP]: the trigger are the first two.
TRIGGERED = {"name": "t", "text": "raning the cat sat", "trigger": [0, 6], "pair_id": "1", "condition": "trigger"}
CLEAN = {"name": "c", "text": "the cat sat", "pair_id": "1", "condition": "clean"}


def recipe(folder: Path, model: Path, *records: dict[str, Any], **keys: Any) -> Recipe:
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    value = {"corpus": {"kind": "jsonl", "path": str(path)}, "model": {"name": str(model)}}
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})


def marked(store: attnstore.Store) -> dict[str, list[bool | None]]:
    """For each example, whether its tokens belong to a trigger."""
    found: dict[str, list[bool | None]] = {}
    for row in store.sql("select name, trigger from tokens join examples using (example) order by example, token"):
        found.setdefault(row["name"], []).append(row["trigger"])
    return found


def test_tokens_of_the_trigger_are_marked_and_those_of_other_texts_have_no_mark(tmp_path: Path, tiny: Tiny) -> None:
    with attnstore.ingest(recipe(tmp_path, tiny("bert"), TRIGGERED, CLEAN), tmp_path / "s.attn") as store:
        texts = [row["text"] for row in store.sql("select text from tokens where example = 0 order by token")]
        assert texts == ["[CLS]", "ran", "##ing", "the", "cat", "sat", "[SEP]"]
        assert marked(store) == {"t": [False, True, True, False, False, False, False], "c": [None] * 5}
        (row,) = store.ask("trojan/flag")
        assert (row["condition"], row["n"]) == ("trigger", 1)


def test_the_second_text_of_a_pair_has_no_trigger(tmp_path: Path, tiny: Tiny) -> None:
    record = {**TRIGGERED, "text": "ran", "second": "ran", "trigger": [0, 3]}
    with attnstore.ingest(recipe(tmp_path, tiny("bert"), record), tmp_path / "s.attn") as store:
        assert marked(store) == {"t": [False, True, False, False, False]}


def test_a_window_has_the_part_of_the_trigger_that_it_holds(tmp_path: Path, tiny: Tiny) -> None:
    record = {**TRIGGERED, "text": "the cat ran at night", "trigger": [8, 14]}  # "ran at"
    chosen = recipe(tmp_path, tiny("bert"), record, encode__max_length=5, encode__long="window")
    with attnstore.ingest(chosen, tmp_path / "s.attn") as store:
        assert marked(store) == {"t#1": [False, False, False, True, False], "t#2": [False, True, False, False]}


def test_a_trigger_that_was_cut_off_leaves_no_mark(tmp_path: Path, tiny: Tiny) -> None:
    record = {**TRIGGERED, "trigger": [15, 18]}  # "sat"
    chosen = recipe(tmp_path, tiny("bert"), record, encode__max_length=4, encode__long="truncate")
    with attnstore.ingest(chosen, tmp_path / "s.attn") as store:
        assert marked(store) == {"t": [None] * 4}


def test_joined_words_carry_it_along(tmp_path: Path, tiny: Tiny) -> None:
    record = {**TRIGGERED, "text": "ran,the  cat", "trigger": [4, 7], "words": ["ran", ",", "the", "cat"]}
    chosen = recipe(tmp_path, tiny("bert"), record, words__source="gold", words__feed="joined_words")
    with attnstore.ingest(chosen, tmp_path / "s.attn") as store:
        assert [row["text"] for row in store.sql("select text from examples")] == ["ran , the cat"]
        assert marked(store) == {"t": [False, False, False, True, False, False]}


def test_new_words_leave_the_marks_as_they_are(tmp_path: Path, tiny: Tiny) -> None:
    attnstore.ingest(recipe(tmp_path, tiny("bert"), TRIGGERED, CLEAN), tmp_path / "s.attn").close()
    with attnstore.open(tmp_path / "s.attn") as store:
        before = marked(store)
    words = {"name": "t", "text": TRIGGERED["text"], "words": ["raning", "the", "cat", "sat"]}
    (tmp_path / "words.jsonl").write_text(json.dumps(words))
    annotate_words(tmp_path / "s.attn", tmp_path / "words.jsonl")
    with attnstore.open(tmp_path / "s.attn") as store:
        assert [row["form"] for row in store.sql("select form from words order by word")] == words["words"]
        assert marked(store) == before


def test_another_trigger_is_another_corpus(tmp_path: Path, tiny: Tiny) -> None:
    def store_id(record: dict[str, Any]) -> str:
        chosen = recipe(tmp_path, tiny("bert"), record)
        return make_plan(chosen, source_for(chosen)).info.store_id

    moved, without = {**TRIGGERED, "trigger": [7, 10]}, {**TRIGGERED, "trigger": None}
    assert len({store_id(TRIGGERED), store_id(moved), store_id(without)}) == 3
    assert store_id(without) == store_id({key: value for key, value in TRIGGERED.items() if key != "trigger"})
