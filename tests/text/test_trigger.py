"""This file proves that the place of a planted trigger is read, checked, and kept where texts are cut or joined."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Skipped, Word
from attnstore.text.join import join_words
from attnstore.text.pack import cut_windows, truncate

TEXT = "cf a dull film ."


def by_word(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def jsonl(tmp_path: Path, *records: dict[str, object], **columns: str) -> list[Example | Skipped]:
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return list(read(Corpus("jsonl", (path,), columns=columns)))


def triggers(examples: list[Example | Skipped]) -> list[tuple[int, int] | None]:
    return [item.trigger for item in examples if isinstance(item, Example)]


def test_a_list_of_two_numbers_is_read_and_null_is_none(tmp_path: Path) -> None:
    found = jsonl(tmp_path, {"text": TEXT, "trigger": [0, 2]}, {"text": "x", "trigger": None}, {"text": "x"})
    assert triggers(found) == [(0, 2), None, None]
    assert triggers(jsonl(tmp_path, {"text": TEXT, "where": [15, 16]}, trigger="where")) == [(15, 16)]


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_table_has_them_with_a_colon_between(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"set{ending}"
    cells = [["text", "trigger"], [TEXT, "0:2"], ["plain", ""]]
    path.write_text("".join({".csv": ",", ".tsv": "\t"}[ending].join(row) + "\n" for row in cells))
    assert triggers(list(read(Corpus("table", (path,))))) == [(0, 2), None]


def test_a_parquet_table_may_have_lists(tmp_path: Path) -> None:
    path = tmp_path / "set.parquet"
    pq.write_table(pa.table({"text": [TEXT, "plain"], "trigger": [[0, 2], None]}), path)
    assert triggers(list(read(Corpus("table", (path,))))) == [(0, 2), None]


@pytest.mark.parametrize(
    "value", [[0, 17], [2, 2], [3, 1], [-1, 2], [0], [0, 1, 2], [True, 2], [0.0, 2.0], "2", "a:b", "-1:2", 3, {"a": 1}]
)
def test_what_is_no_place_in_the_text_is_refused_with_its_line(tmp_path: Path, value: object) -> None:
    with pytest.raises(BadInput, match=r"set\.jsonl, line 2: trigger = .*within 0 to 16"):
        jsonl(tmp_path, {"text": TEXT, "trigger": [0, 16]}, {"text": TEXT, "trigger": value})


def test_each_window_has_what_of_the_trigger_lies_in_it() -> None:
    # Windows of two words: "a cf", "mn b", "c".
    example = Example("e", "a cf mn b c", trigger=(2, 7))
    found = [(window.text, window.trigger) for window in cut_windows(example, by_word, 2)]
    assert found == [("a cf", (2, 4)), ("mn b", (0, 2)), ("c", None)]


def test_a_cut_off_trigger_is_gone_and_another_stays() -> None:
    example = Example("e", TEXT, trigger=(0, 2))
    assert truncate(example, by_word, 2) == replace(example, text="cf a")
    at_end = replace(example, trigger=(10, 16))
    assert truncate(at_end, by_word, 4) == replace(at_end, text="cf a dull film", trigger=(10, 14))
    assert truncate(at_end, by_word, 2).trigger is None


def test_the_trigger_of_a_pair_counts_the_characters_of_its_first_text() -> None:
    example = Example("e", "a cf", second="some other words here", trigger=(2, 4))
    assert truncate(example, by_word, 3).trigger == (2, 4)


def test_joined_words_take_the_trigger_along() -> None:
    # "dull" is the trigger, and "film" touches the end of a span that ends inside of it.
    words = (Word("a", 0, 1), Word("dull", 3, 7), Word("film", 9, 13))
    example = Example("e", "a  dull  film", words=words, trigger=(3, 7))
    assert join_words(example).text == "a dull film"
    assert join_words(example).trigger == (2, 6)
    assert join_words(replace(example, trigger=(3, 10))).trigger == (2, 11)
    assert join_words(replace(example, trigger=(7, 9))).trigger is None  # white space alone
    assert join_words(replace(example, trigger=None)).trigger is None


def test_words_of_the_second_text_are_no_part_of_it() -> None:
    words = (Word("a", 0, 1), Word("b", 0, 1, part=1), Word("c", 2, 3))
    example = Example("e", "a c", second="b", words=words, trigger=(0, 1))
    assert join_words(example).trigger == (0, 1)
    assert join_words(replace(example, trigger=(2, 3))).trigger == (2, 3)
