"""Tests that a question is refused where a store lacks the annotation that it needs, with what gives it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from attnstore.catalogue.catalogue import questions
from attnstore.errors import BadQuestion, NotStored
from attnstore.job.annotate_patterns import annotate_patterns
from attnstore.store.needs import _EVIDENCE, _NEEDS
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, SYNTAX, one, sentence
from tests.store.making import Made, make_store

BARE = one(sentence(["a", "b", "c"]), SYNTAX)

_SPAN = ("source_start_word", "source_end_word", "target_start_word", "target_end_word")

GIVEN: dict[str, dict[str, Any]] = {
    "mentions": {"mentions": [{"cluster": "c", "start_word": 0, "end_word": 1, "head_word": 0}]},
    "links": {"links": [{"relation": "r", **dict.fromkeys(_SPAN[::2], 0), **dict.fromkeys(_SPAN[1::2], 1)}]},
    "labels": {"columns": {"label": "yes"}},
    "documents": {"columns": {"document": "d"}},
    "images": {"columns": {"luminance": 0.5}},
}

REMEDIES = {
    "words": "--words FILE",
    "relations": "--words FILE",
    "tags": "--words FILE",
    "mentions": "--mentions FILE",
    "links": "--links FILE",
    "parts": "pairs",
    "labels": "--labels FILE",
    "documents": "document",
    "images": 'kind = "images"',
    "grid": "`rows` and `cols`",
    "triggers": "docs/trojan.py",
}


def _with(need: str) -> Made:
    """An example that has what is needed, and of the rest nothing."""
    if need in GIVEN:
        return replace(BARE, **GIVEN[need])
    if need == "triggers":
        return replace(BARE, source=replace(BARE.source, trigger=[False, True, False, False, False]))
    if need == "grid":
        return replace(BARE, source=replace(BARE.source, places=[None, (0, 0), None, None, None]))
    words = [dict(word) for word in BARE.source.words]
    if need == "relations":
        words[0] |= {"deprel": "dep", "governor": 1}
    if need == "parts":
        words[2] |= {"part": 1}
    if need == "tags":
        words[0] |= {"xpos": "NN"}
    return replace(BARE, source=replace(BARE.source, words=words))


def _asked(store: Store, need: str, folder: Path) -> int:
    mine = folder / "mine.sql"
    mine.write_text(f"-- Mine.\n-- needs: {need}\nselect count(*) as n from examples\n")
    (row,) = store.ask(str(mine))
    return int(row["n"])


@pytest.mark.parametrize("need", REMEDIES)
def test_a_store_that_has_it_answers_and_one_that_has_the_rest_is_told_what_to_do(need: str, tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "with.attn", [BARE, _with(need)], kinds=ONE)) as store:
        assert _asked(store, need, tmp_path) == 2  # one example that has it is enough
    without = BARE
    if need == "words":
        without = replace(BARE, source=replace(BARE.source, words=[], word=[-1] * 5))
    with open_store(make_store(tmp_path / "without.attn", [without], kinds=ONE)) as store:
        with pytest.raises(NotStored, match="asking") as caught:
            _asked(store, need, tmp_path)
        assert REMEDIES[need] in caught.value.remedy


def test_every_need_is_tested_here() -> None:
    assert {*REMEDIES, "patterns"} == set(_NEEDS)


def test_patterns_that_nobody_gave_are_refused_and_given_ones_counted(tmp_path: Path) -> None:
    root = make_store(tmp_path / "s.attn", [BARE], kinds=ONE)
    with open_store(root) as store, pytest.raises(NotStored, match="no map was given a pattern") as caught:
        store.ask("patterns/shares", labels="own")
    assert "--patterns FILE" in caught.value.remedy
    (tmp_path / "p.csv").write_text("example,layer,head,pattern\n0,0,0,block\n")
    annotate_patterns(root, tmp_path / "p.csv")
    with open_store(root) as store:
        assert [row["pattern"] for row in store.ask("patterns/shares", labels="own")] == ["block"]


@pytest.mark.parametrize(
    ("question", "asked", "found"),
    [
        ("heads/flow", {"classes": "upos"}, "no word has a part of speech"),
        ("heads/flow", {"classes": "part"}, "no example has a second part"),
        ("patterns/shares", {"by": "label"}, "no example has a label"),
        ("pairs/alignment", {"property": "links"}, "the store has no links"),
        ("pairs/alignment", {"property": "same_entity"}, "the store has no mentions"),
        ("pairs/token_to_token", {"property": "noun_pronoun"}, "no word has a part of speech"),
        ("relations/best", {}, "no word has a dependency relation"),
    ],
)
def test_what_one_choice_needs_is_refused_for_that_choice_alone(
    question: str, asked: dict[str, str], found: str, tmp_path: Path
) -> None:
    with open_store(make_store(tmp_path / "s.attn", [BARE], kinds=ONE)) as store:
        with pytest.raises(NotStored, match=found):
            store.ask(question, **asked)
        assert len(store.ask("heads/flow")) > 0
        assert len(store.ask("patterns/shares")) > 0
        assert len(store.ask("pairs/alignment", property="same_form")) > 0


def test_every_shipped_need_is_known() -> None:
    wanted = {need.annotation for question in questions().values() for need in question.needs}
    assert wanted
    assert wanted <= {*_NEEDS, *_EVIDENCE}


def test_a_need_of_one_choice_names_a_parameter_and_a_choice_of_it() -> None:
    for question in questions().values():
        for need in question.needs:
            if need.parameter is not None:
                assert set(need.choices) <= set(question.params[need.parameter].choices), (question.name, need)


def test_an_unknown_need_is_an_error_of_the_question(tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("-- Mine.\n-- needs: patience\nselect 1 as n\n")
    with (
        open_store(make_store(tmp_path / "s.attn", [BARE], kinds=ONE)) as store,
        pytest.raises(BadQuestion, match="patience"),
    ):
        store.ask(str(mine))


def test_a_condition_that_leaves_out_every_annotated_example_is_no_refusal(tmp_path: Path) -> None:
    made = [BARE, _with("relations")]
    with open_store(make_store(tmp_path / "s.attn", made, kinds=ONE)) as store:
        assert len(store.ask("relations/accuracy", where="example = 0")) == 0
        assert len(store.ask("relations/accuracy", where="example = 1")) > 0
