"""This file reads a file of annotations and says which example of a store each of them is for."""

from collections import deque
from collections.abc import Iterator, Sequence
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


def check_file(path: Path, doing: str) -> None:
    """Raises BadInput unless `path` is a file whose ending says how to read it."""
    if path.suffix.lower() not in KINDS:
        raise BadInput(f"{doing} with {path}", f"the ending {path.suffix!r}", f"one of {', '.join(KINDS)}")
    if not path.is_file():
        raise BadInput(f"{doing} with {path}", "no such file", "a file of annotations")


def match(store: Store, path: Path, doing: str) -> Matched:
    """Match each annotation by the name that the file gives it, else by its text, raw or of its words joined.

    Where several examples have one text, the annotations of that text go to them in order, the last of them to those
    that are left. Names that were only made from file and line do not count: they say nothing about another corpus.
    BadInput where nothing matches.
    """
    rows = list(store.sql("select example, name, text, second, target from examples order by example"))
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    items = list(_examples(path, doing))
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


def _examples(path: Path, doing: str) -> Iterator[Example]:
    check_file(path, doing)
    for item in read(Corpus(KINDS[path.suffix.lower()], (path,))):
        if isinstance(item, Skipped):
            raise BadInput(f"reading {item.where}", item.reason, "an annotated text")
        yield item


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
