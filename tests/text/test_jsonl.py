"""This file proves that JSON Lines keep what they hold, find their words, and name the line of whatever is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Link, Mention, Skipped, Word


def load(tmp_path: Path, *records: object, columns: dict[str, str] | None = None) -> list[Example | Skipped]:
    path = tmp_path / "set.jsonl"
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines), encoding="utf-8")
    return list(read(Corpus("jsonl", (path,), columns=columns or {})))


def one(tmp_path: Path, record: dict[str, Any], **columns: str) -> Example:
    (example,) = load(tmp_path, record, columns=columns)
    assert isinstance(example, Example)
    return example


def error_of(tmp_path: Path, *records: object, **columns: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, *records, columns=columns)
    return caught.value


def test_every_field_arrives(tmp_path: Path) -> None:
    record = {
        "name": "n1",
        "text": "Go home.",
        "second": "Go!",
        "target": "Geh heim.",
        "label": 1,
        "split": "dev",
        "document": "d",
        "pair_id": 7,
        "condition": True,
        "unknown": [1, 2],
    }
    assert one(tmp_path, record) == Example(
        "n1",
        "Go home.",
        second="Go!",
        target="Geh heim.",
        label="1",
        split="dev",
        document="d",
        pair_id="7",
        condition="true",
        where="set.jsonl:1",
    )


def test_columns_rename_fields_and_id_is_a_name(tmp_path: Path) -> None:
    record = {"id": 12, "sentence1": "A.", "sentence2": "B.", "gold": "next"}
    example = one(tmp_path, record, text="sentence1", second="sentence2", label="gold")
    assert (example.name, example.text, example.second, example.label) == ("12", "A.", "B.", "next")


def test_null_and_empty_values_mean_none_and_names_are_made_up(tmp_path: Path) -> None:
    example = one(tmp_path, {"id": "", "text": "A.", "second": None, "label": "", "words": None})
    assert (example.name, example.second, example.label, example.words) == ("set:1", None, None, ())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"text": ""}, "its text is empty"),
        ({"text": None}, "its text is empty"),
        ({"text": "a", "second": " \n"}, "its second is empty"),
        ({"text": "a", "target": ""}, "its target is empty"),
    ],
)
def test_an_empty_text_is_skipped_with_a_reason(tmp_path: Path, record: dict[str, Any], reason: str) -> None:
    assert load(tmp_path, record) == [Skipped("set:1", reason, "set.jsonl:1")]


def test_broken_json_is_named_by_line_and_column(tmp_path: Path) -> None:
    error = error_of(tmp_path, {"text": "a"}, "", '{"text": "a",}')
    assert error.doing == f"reading {tmp_path / 'set.jsonl'}, line 3"
    assert error.found.startswith("column 1")  # column 13 or 14, by the version of Python
    assert error.expected == "one JSON object a line"


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ([1], "a list"),
        ("[" * 100_000, "JSON nested too deeply"),
        ('{"text": "\\ud83d"}', "an escaped surrogate without its partner"),
        ({"txt": "a"}, "there is no 'text' for the field 'text', only 'txt'"),
        ({}, "only nothing"),
        ({"text": ["a"]}, "'text' is a list"),
    ],
)
def test_what_is_no_usable_object_is_an_error(tmp_path: Path, record: object, found: str) -> None:
    error = error_of(tmp_path, record)
    assert error.doing.endswith("set.jsonl, line 1")
    assert found in error.found


def test_a_missing_key_that_columns_name_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    error = error_of(tmp_path, {"text": "a", "gold": "x"}, {"text": "a", "golt": "x"}, label="gold")
    assert error.doing.endswith("line 2")
    assert error.remedy == "Did you mean 'golt'?"


def test_a_whole_surrogate_pair_is_a_character(tmp_path: Path) -> None:
    (example,) = load(tmp_path, '{"text": "\\ud83d\\ude00"}')
    assert isinstance(example, Example)
    assert example.text == "😀"


def test_words_without_offsets_are_found_from_left_to_right(tmp_path: Path) -> None:
    # The second "a" is not the first, and "n't" follows "do" without a space.
    text = "a cat don't a"
    example = one(tmp_path, {"text": text, "words": ["a", {"form": "cat"}, "do", "n't", "a"]})
    assert [(word.start_char, word.end_char) for word in example.words] == [(0, 1), (2, 5), (6, 8), (8, 11), (12, 13)]


def test_words_keep_their_annotation_and_offsets_and_a_null_place(tmp_path: Path) -> None:
    words = [
        {"form": "De", "start_char": None, "governor": 2, "deprel": "case", "upos": "ADP", "xpos": "IN", "lemma": "de"},
        {"form": "le", "start_char": None, "end_char": None, "head": 2, "deprel": "det"},
        {"form": "VIN", "start_char": 3, "end_char": 6, "deprel": "root", "sentence": 4},
    ]
    example = one(tmp_path, {"text": "Du vin", "words": words})
    assert example.words == (
        Word("De", lemma="de", upos="ADP", xpos="IN", governor=2, deprel="case"),
        Word("le", governor=2, deprel="det"),
        Word("VIN", 3, 6, deprel="root", sentence=4),
    )


def test_words_of_the_second_text_and_of_the_target_lie_there(tmp_path: Path) -> None:
    record = {
        "text": "one two",
        "second": "two one",
        "target": "zwei",
        "words": ["two", {"form": "one", "part": 1, "governor": 0}],
        "target_words": ["zwei"],
    }
    example = one(tmp_path, record)
    assert [(word.start_char, word.part) for word in example.words] == [(4, 0), (4, 1)]
    assert example.target_words == (Word("zwei", 0, 4),)


def test_mentions_and_links_arrive_with_head_and_type(tmp_path: Path) -> None:
    words = [
        {"form": "her", "governor": 1, "deprel": "nmod:poss", "xpos": "PRP$"},
        {"form": "boat", "governor": 2, "deprel": "nsubj", "upos": "NOUN"},
        {"form": "sank", "deprel": "root", "upos": "VERB"},
    ]
    link = {
        "relation": "Theme",
        "source_start_word": 2,
        "source_end_word": 3,
        "target_start_word": 0,
        "target_end_word": 2,
        "core": False,
    }
    mentions = [
        {"cluster": 4, "start_word": 0, "end_word": 2},
        {"cluster": "x", "start_word": 0, "end_word": 1, "type": "zero"},
    ]
    example = one(tmp_path, {"text": "her boat sank", "words": words, "mentions": mentions, "links": [link]})
    assert example.mentions == (Mention("4", 0, 2, 1, "nominal"), Mention("x", 0, 1, 0, "zero"))
    assert example.links == (Link("Theme", 2, 3, 0, 2, core=False),)


@pytest.mark.parametrize(
    ("extra", "found"),
    [
        ({"words": "ab"}, "words is str"),
        ({"words": [3]}, "words[0] is int"),
        ({"words": [{"form": " "}]}, "words[0] has no form"),
        ({"words": ["b", "a"]}, "words[1], 'a', is not in the text from character 3 on"),
        ({"words": [{"form": "a", "start_char": 0}]}, "only one of start_char and end_char"),
        ({"words": [{"form": "a", "start_char": 0, "end_char": 9}]}, "words[0] lies at 0 to 9"),
        ({"words": [{"form": "a", "start_char": 1, "end_char": 1}]}, "words[0] lies at 1 to 1"),
        ({"words": ["a", {"form": "a", "start_char": 0, "end_char": 1}]}, "words[1] lies at 0 to 1"),
        ({"words": [{"form": "a", "start_char": "0", "end_char": 1}]}, "start_char '0'"),
        ({"words": [{"form": "a", "part": 1}]}, "words[0] is in part 1"),
        ({"words": [{"form": "a", "part": -1}]}, "words[0] is in part -1"),
        ({"words": [{"form": "a", "governor": 1}]}, "words[0] has governor 1"),
        ({"words": [{"form": "a", "governor": 0}]}, "its own governor"),
        ({"words": [{"form": "a", "governor": 1}, {"form": "b", "governor": 0}]}, "run in a circle"),
        ({"words": [{"form": "a", "governor": True}]}, "governor True"),
        ({"words": [{"form": "a", "upos": 1}]}, "upos 1"),
        (
            {"words": ["a"], "mentions": [{"cluster": "1", "start_word": 0, "end_word": 2}]},
            "start_word 0 and end_word 2",
        ),
        ({"words": ["a"], "mentions": [{"start_word": 0, "end_word": 1}]}, "mentions[0] has cluster None"),
        (
            {"words": ["a", "b"], "mentions": [{"cluster": "1", "start_word": 0, "end_word": 1, "head_word": 1}]},
            "head_word 1",
        ),
        ({"words": ["a"], "links": [{"source_start_word": 0}]}, "links[0] has no relation"),
        (
            {"words": ["a"], "links": [{"relation": "r", "source_start_word": 0, "source_end_word": 1}]},
            "target_start_word None",
        ),
    ],
)
def test_annotation_that_does_not_fit_is_an_error_with_its_line(
    tmp_path: Path, extra: dict[str, Any], found: str
) -> None:
    error = error_of(tmp_path, {"text": "ok"}, {"text": "a b", **extra})
    assert error.doing.endswith("set.jsonl, line 2")
    assert found in error.found
    assert error.expected
