"""This file reads a file of annotations and says which example of a store each of them is for."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput
from attnstore.store.store import Store
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Skipped, Word

KINDS = {".conllu": "conllu", ".jsonl": "jsonl", ".csv": "table", ".tsv": "table", ".parquet": "table"}
"""How a file of annotations is read, by its ending."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Example number -> (its row, its annotation), and the names of annotations that match nothing."""

    found: dict[int, tuple[dict[str, Any], Example]]
    unmatched: tuple[str, ...]


def check_file(path: Path, doing: str, endings: Collection[str] = KINDS) -> None:
    """Raises BadInput unless `path` is a file whose ending says how to read it."""
    if path.suffix.lower() not in endings:
        raise BadInput(f"{doing} with {path}", f"the ending {path.suffix!r}", f"one of {', '.join(endings)}")
    if not path.is_file():
        raise BadInput(f"{doing} with {path}", "no such file", "a file of annotations")


def annotations(path: Path, doing: str) -> Iterator[Example]:
    """The entries of a file, read as a corpus of its ending. BadInput for one that a corpus would skip."""
    check_file(path, doing)
    for item in read(Corpus(KINDS[path.suffix.lower()], (path,))):
        yield usable(item)


def usable(item: Example | Skipped) -> Example:
    """The example. BadInput for one that a corpus would skip."""
    if isinstance(item, Skipped):
        raise BadInput(f"reading {item.where}", item.reason, "an annotated text")
    return item


def match(store: Store, items: Sequence[Example], path: Path, doing: str) -> Matched:
    """Match each annotation of a file by the name that the file gives it, else by its text, raw or of its words joined.

    Where several examples have one text, the annotations of that text go to them in order, the last of them to those
    that are left. Names that were only made from file and line do not count: they say nothing about another corpus.
    BadInput where nothing matches.
    """
    rows = list(store.sql("select example, name, text, second, target from examples order by example"))
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    found: dict[int, tuple[dict[str, Any], Example]] = {}
    others = []
    for item in items:
        named = [] if _is_made(item, path) else by_name.get(item.name, [])
        found |= {row["example"]: (row, item) for row in named}
        if not named:
            others.append(item)
    unmatched = _match_texts([row for row in rows if row["example"] not in found], others, found)
    if not found:
        shown = ", ".join(item.name for item in items[:3])
        expected = "names or texts of its examples"
        raise BadInput(doing, f"no example of the store has the name or the text of {shown}, …", expected)
    return Matched(dict(sorted(found.items())), tuple(unmatched))


def _is_made(item: Example, path: Path) -> bool:
    return item.name == f"{path.stem}:{item.where.rpartition(':')[2]}"


def _match_texts(
    rows: Sequence[dict[str, Any]], items: Sequence[Example], found: dict[int, tuple[dict[str, Any], Example]]
) -> list[str]:
    left: dict[str, deque[dict[str, Any]]] = {}
    for row in rows:
        left.setdefault(row["text"], deque()).append(row)
    last: dict[str, Example] = {}
    unmatched = []
    for item in items:
        text = next((text for text in (item.text, _joined(item.words)) if text in left), None)
        if text is None or not left[text]:
            unmatched.append(item.name)
            continue
        # Of pairs with one first text, the one with the same second text; a lone text takes what comes.
        row = next((row for row in left[text] if row["second"] == item.second), left[text][0])
        left[text].remove(row)
        found[row["example"]] = (row, item)
        last[text] = item
    for text, item in last.items():
        for row in left[text]:
            if row["second"] == item.second:
                found[row["example"]] = (row, item)
    return unmatched


def _joined(words: Sequence[Word]) -> str:
    return " ".join(word.form for word in words if word.part == 0)


def stored_words(store: Store, numbers: Collection[int], side: str) -> dict[int, tuple[Word, ...]]:
    """The words that the store has on one side of each of these examples; those without words are left out."""
    found: dict[int, list[Word]] = {}
    for row in store.sql("select * from words where side = $side order by example, word", side=side):
        if row["example"] in numbers:
            found.setdefault(row["example"], []).append(Word(**{name: row[name] for name in Word.__slots__}))
    return {number: tuple(words) for number, words in found.items()}


def check_pair(row: Mapping[str, Any], item: Example, doing: str) -> None:
    """Raises BadInput where only one of a stored example and its annotation is a pair."""
    if (row["second"] is None) != (item.second is None):
        found = f"example {row['name']} is {'a pair' if item.second is None else 'no pair'}"
        expected = "both parts, as JSON Lines can give them" if item.second is None else "one text"
        raise BadInput(f"{doing}, {item.where}", found, expected)
