"""This file proves that ambiguous pronouns become mentions of words, whoever the pronoun means."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Mention, Skipped, Word
from attnstore.text.pack import cut_windows
from attnstore.text.places import split_words, words_over

ITEM: dict[str, Any] = {
    "id": "d-1",
    "text": "Ida Holm's sister met Una when she left.",
    "pronoun": "she",
    "pronoun_offset": 31,
    "a": "Ida Holm",
    "a_offset": 0,
    "a_coref": False,
    "b": "Una",
    "b_offset": 22,
    "b_coref": True,
}


def load(tmp_path: Path, *records: dict[str, Any]) -> list[Example | Skipped]:
    path = tmp_path / "gap.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return list(read(Corpus("gap", (path,))))


def one(tmp_path: Path, **change: Any) -> Example:
    (example,) = load(tmp_path, ITEM | change)
    assert isinstance(example, Example)
    return example


def test_mentions_are_spans_of_the_words_into_which_the_text_is_split(tmp_path: Path) -> None:
    example = one(tmp_path)
    forms = ["Ida", "Holm", "'", "s", "sister", "met", "Una", "when", "she", "left", "."]
    assert [word.form for word in example.words] == forms
    assert [example.text[word.start_char : word.end_char] for word in example.words] == forms
    assert (example.name, example.document, example.where) == ("d-1", "d-1", "gap.jsonl:1")
    assert example.mentions == (
        Mention("a", 0, 2, 1, "proper"),
        Mention("pronoun", 6, 7, 6, "proper"),
        Mention("pronoun", 8, 9, 8, "pronoun"),
    )


@pytest.mark.parametrize(
    ("a", "b", "clusters"),
    [
        (True, False, ["pronoun", "b", "pronoun"]),
        (False, False, ["a", "b", "pronoun"]),
        (True, True, ["pronoun", "pronoun", "pronoun"]),
    ],
)
def test_a_name_shares_the_cluster_of_the_pronoun_where_it_corefers(
    tmp_path: Path, a: bool, b: bool, clusters: list[str]
) -> None:
    example = one(tmp_path, a_coref=a, b_coref=b)
    assert [mention.cluster for mention in example.mentions] == clusters


def test_a_pronoun_before_the_names_comes_first(tmp_path: Path) -> None:
    example = one(tmp_path, text="She met Una, Ida Holm.", pronoun="She", pronoun_offset=0, b_offset=8, a_offset=13)
    assert [(m.type, m.start_word, m.end_word) for m in example.mentions] == [
        ("pronoun", 0, 1),
        ("proper", 2, 3),
        ("proper", 4, 6),
    ]


def test_a_window_keeps_the_mentions_that_lie_in_it(tmp_path: Path) -> None:
    def by_word(text: str) -> list[tuple[int, int]]:
        return [found.span() for found in re.finditer(r"\w+|[^\w\s]", text)]

    first, second = cut_windows(one(tmp_path), by_word, 7)
    assert (first.text, second.text) == ("Ida Holm's sister met Una", "when she left.")
    assert [mention.cluster for mention in first.mentions] == ["a", "pronoun"]
    assert second.mentions == (Mention("pronoun", 1, 2, 1, "pronoun"),)


def test_an_empty_text_is_skipped_with_a_reason(tmp_path: Path) -> None:
    assert load(tmp_path, ITEM | {"text": " "}) == [Skipped("d-1", "its text is empty", "gap.jsonl:1")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pronoun_offset": 30}, "at character 30, where pronoun 'she' is to be, stands ' sh'"),
        ({"pronoun_offset": -9}, "at character -9, where pronoun 'she' is to be, stands ''"),
        ({"b_offset": 99}, "at character 99, where b 'Una' is to be, stands ''"),
        ({"a": ""}, "a '' at 0; expected a and a_offset"),
        ({"a_offset": None}, "a 'Ida Holm' at None"),
        ({"a_offset": "0"}, "a_offset '0'; expected a whole number"),
        ({"a_coref": None}, "no a_coref; expected true or false"),
        ({"b_coref": "TRUE"}, "b_coref 'TRUE'; expected true or false"),
        ({"pronoun": " ", "pronoun_offset": 3}, "pronoun is ' '; expected a word"),
        ({"text": 3}, "text 3; expected text"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=r"gap\.jsonl, line 2: .*" + message):
        load(tmp_path, ITEM | {"id": "other"}, ITEM | change)


def test_an_object_without_a_text_is_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"line 1: there is no text, only 'tokens'"):
        load(tmp_path, {"tokens": []})


# --- words by their characters


def test_signs_are_words_by_themselves_and_letters_of_any_script_are_not_split() -> None:
    assert split_words("Dvořák's (née 李)") == (
        Word("Dvořák", 0, 6),
        Word("'", 6, 7),
        Word("s", 7, 8),
        Word("(", 9, 10),
        Word("née", 10, 13),
        Word("李", 14, 15),
        Word(")", 15, 16),
    )


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 1, (0, 1)), (2, 5, (0, 2)), (3, 4, None), (4, 7, (1, 2)), (7, 9, None), (0, 9, (0, 2))],
)
def test_words_over_characters_are_those_that_have_one_of_them(
    start: int, end: int, expected: tuple[int, int] | None
) -> None:
    words = (Word("Ida", 0, 3), Word("met", 4, 7), Word("Una", 0, 3, part=1))
    assert words_over(words, 0, start, end) == expected
    touched = [
        index
        for index, w in enumerate(words)
        if w.part == 0 and set(range(start, end)) & set(range(w.start_char or 0, w.end_char or 0))
    ]
    assert (expected is None and not touched) or expected == (touched[0], touched[-1] + 1)


def test_words_of_the_second_text_are_found_there() -> None:
    words = (Word("Ida", 0, 3), Word("met", 4, 7), Word("Una", 0, 3, part=1))
    assert words_over(words, 1, 0, 3) == (2, 3)
