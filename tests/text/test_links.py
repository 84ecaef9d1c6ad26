"""This file proves that frames become links from each element to the target, and that what is wrong is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Link, Skipped, Word
from attnstore.text.pack import truncate
from attnstore.text.splice import joined

GIVING: dict[str, Any] = {
    "id": "g1",
    "frame": "Giving",
    "tokens": ["Nadia", "gave", "the", "keys", "back", "."],
    "target": {"start": 1, "end": 2},
    "frame_elements": [
        {"name": "Donor", "core": True, "start": 0, "end": 1},
        {"name": "Theme", "core": True, "start": 2, "end": 4},
        {"name": "Manner", "core": False, "start": 4, "end": 5},
    ],
}


def load(tmp_path: Path, *records: dict[str, Any]) -> list[Example | Skipped]:
    path = tmp_path / "frames.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return list(read(Corpus("links", (path,))))


def one(tmp_path: Path, **change: Any) -> Example:
    (example,) = load(tmp_path, GIVING | change)
    assert isinstance(example, Example)
    return example


def test_each_element_is_a_link_from_its_span_to_the_target(tmp_path: Path) -> None:
    example = one(tmp_path)
    assert (example.name, example.text, example.label) == ("g1", "Nadia gave the keys back .", "Giving")
    assert example.where == "frames.jsonl:1"
    assert example.links == (
        Link("Donor", 0, 1, 1, 2, core=True),
        Link("Theme", 2, 4, 1, 2, core=True),
        Link("Manner", 4, 5, 1, 2, core=False),
    )


def test_words_are_the_tokens_at_their_places_in_the_joined_text(tmp_path: Path) -> None:
    example = one(tmp_path)
    assert example.words[:3] == (Word("Nadia", 0, 5), Word("gave", 6, 10), Word("the", 11, 14))
    assert [example.text[word.start_char : word.end_char] for word in example.words] == GIVING["tokens"]


def test_an_element_that_does_not_say_whether_it_is_core_has_none(tmp_path: Path) -> None:
    assert one(tmp_path, frame_elements=[{"name": "Donor", "start": 0, "end": 1}]).links[0].core is None


def test_a_sentence_without_elements_or_name_or_frame_is_an_example(tmp_path: Path) -> None:
    example = one(tmp_path, id=None, frame=None, frame_elements=None)
    assert (example.name, example.label, example.links) == ("frames:1", None, ())


def test_a_sentence_without_tokens_is_skipped_with_a_reason(tmp_path: Path) -> None:
    assert load(tmp_path, GIVING | {"tokens": []}) == [Skipped("g1", "it has no tokens", "frames.jsonl:1")]


def test_core_goes_along_when_examples_are_joined_and_cut(tmp_path: Path) -> None:
    first, second = load(tmp_path, GIVING, GIVING | {"id": "g2"})
    assert isinstance(first, Example)
    assert isinstance(second, Example)
    whole = joined([first, second])
    assert whole.links[3:] == (
        Link("Donor", 6, 7, 7, 8, core=True),
        Link("Theme", 8, 10, 7, 8, core=True),
        Link("Manner", 10, 11, 7, 8, core=False),
    )

    def by_word(text: str) -> list[tuple[int, int]]:
        found, at = [], 0
        for form in text.split():
            at = text.index(form, at)
            found.append((at, at + len(form)))
            at += len(form)
        return found

    assert truncate(first, by_word, 4).links == first.links[:2]  # the third lies beyond the fourth word


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": "Nadia"}, "tokens is str; expected a list"),
        ({"tokens": ["Nadia", " "]}, r"tokens\[1\] is ' '; expected text that is not empty"),
        ({"tokens": ["Nadia", 3]}, r"tokens\[1\] is 3"),
        ({"target": None}, "target is NoneType; expected an object"),
        ({"target": {"start": 1, "end": 1}}, "target has start 1 and end 1; expected .* within 0 to 6"),
        ({"target": {"start": 5, "end": 7}}, "target has start 5 and end 7"),
        ({"frame": 3}, "frame 3; expected text"),
        ({"frame_elements": [{"start": 0, "end": 1}]}, r"frame_elements\[0\] has no name"),
        ({"frame_elements": [{"name": "a", "start": 0, "end": 9}]}, r"frame_elements\[0\] has start 0 and end 9"),
        ({"frame_elements": [{"name": "a", "start": 0}]}, r"frame_elements\[0\] has start 0 and end None"),
        ({"frame_elements": [{"name": "a", "start": 0, "end": 1, "core": 1}]}, "core 1; expected true or false"),
        ({"frame_elements": {}}, "frame_elements is dict; expected a list"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=r"frames\.jsonl, line 2: .*" + message):
        load(tmp_path, GIVING | {"id": "other"}, GIVING | change)


def test_an_object_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"line 1: there are no tokens, only 'text'"):
        load(tmp_path, {"text": "Nadia left."})


def test_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "frames.jsonl").write_text(json.dumps(GIVING))
    with pytest.raises(BadInput, match="this kind has no fields to rename"):
        read(Corpus("links", (tmp_path / "frames.jsonl",), columns={"label": "frame"}))
