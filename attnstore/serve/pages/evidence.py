"""This file marks the words of sentences by what a head makes of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MOST_WORDS = 60
"""Words of a sentence that are shown around those that are marked."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word; `role` is asked, right (picked and gold), gold, wrong (picked and not gold), or empty."""

    text: str
    role: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """One row of evidence. `asked` is the number of the word in the example, from 0."""

    example: int
    name: str
    words: list[Word]
    asked: int
    weight: float | None


def sentences(rows: Iterable[Mapping[str, Any]]) -> list[Sentence]:
    """The rows of relations/evidence, each with its words marked."""
    return [
        Sentence(row["example"], str(row["name"] or ""), _words(row), row["asked_word"], row["weight"]) for row in rows
    ]


def _words(row: Mapping[str, Any]) -> list[Word]:
    # A word may have two roles; what the head was asked about stands first, then what it picked.
    picked = "right" if row["predicted_word"] == row["gold_word"] else "wrong"
    places = ((row["gold_word"], "gold"), (row["predicted_word"], picked), (row["asked_word"], "asked"))
    roles = {place - row["first_word"]: role for place, role in places if place is not None}
    texts = row["sentence"] if isinstance(row["sentence"], list) else str(row["sentence"]).split(" ")
    found = [Word(text, roles.get(index, "")) for index, text in enumerate(texts)]
    marked = [index for index in roles if 0 <= index < len(found)]
    if len(found) <= MOST_WORDS or not marked:
        return found[:MOST_WORDS]
    first, last = max(0, min(marked) - 12), min(len(found), max(marked) + 13)
    start = [Word("…", "")] if first else []
    return [*start, *found[first:last], *([Word("…", "")] if last < len(found) else [])]
