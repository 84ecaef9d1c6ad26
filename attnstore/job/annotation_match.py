"""This file reads a file of annotations and says which example of a store each of them is for."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput
from attnstore.store.store import Store
from attnstore.text import conllu, jsonl, table
from attnstore.text.example import Example, Skipped, Word
from attnstore.text.fields import scalar
from attnstore.text.files import Source
from attnstore.text.typed import Record

Stored = Mapping[str, Mapping[str, Any]]
"""Name -> the row of the example that has it: example, name, text, second, target. In the order of the examples."""

KINDS = {".conllu": "conllu", ".jsonl": "jsonl", ".csv": "table", ".tsv": "table", ".parquet": "table"}
"""How a file of annotations is read, by its ending."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Example number -> (its row, its annotation), and the names of annotations that match nothing."""

    found: dict[int, tuple[Mapping[str, Any], Example]]
    unmatched: tuple[str, ...]


def stored_examples(store: Store) -> Stored:
    """The examples of a store by their names, which are unique."""
    rows = store.sql("select example, name, text, second, target from examples order by example")
    return {row["name"]: row for row in rows}


def check_file(path: Path, doing: str, endings: Collection[str] = KINDS) -> None:
    """Raises BadInput unless `path` is a file whose ending says how to read it."""
    if path.suffix.lower() not in endings:
        raise BadInput(f"{doing} with {path}", f"the ending {path.suffix!r}", f"one of {', '.join(endings)}")
    if not path.is_file():
        raise BadInput(f"{doing} with {path}", "no such file", "a file of annotations")


def annotation_source(path: Path) -> Source:
    """The file as a reader of corpora takes it. A name made from file and line is the place itself, `Example.where`."""
    return Source(path, path.name)


def annotations(stored: Stored, path: Path, doing: str) -> list[Example]:
    """The entries of a file, in order: sentences of CoNLL-U, objects or rows as `named_example` takes them.

    BadInput, with file and line, for a file without any, a name twice, and an entry that a corpus would skip.
    """
    check_file(path, doing)
    source, kind = annotation_source(path), KINDS[path.suffix.lower()]
    if kind == "conllu":
        items = list(map(usable, conllu.read(source)))
    elif kind == "jsonl":
        items = [named_example(source, line, record, stored) for line, record in objects(source)]
    else:
        records = table.FORMATS[path.suffix.lower()](source)
        items = [named_example(source, line, record, stored, table.FIELDS) for line, record in records]
    if not items:
        raise source.error(1, "nothing to read: the file is empty", "one entry or more")
    check_names(source, items)
    return items


def objects(source: Source) -> Iterator[tuple[int, Record]]:
    """Line numbers with the objects of JSON Lines. Blank lines are passed over."""
    for line, content in source.lines():
        if content.strip():
            yield line, jsonl.record_of(source, line, content)


def named_example(
    source: Source, line: int, record: Record, stored: Stored, fields: Sequence[str] = jsonl.FIELDS
) -> Example:
    """The example that a record describes. One that has a name (or `id`) and no text has the texts of the store.

    A name that the store does not know gives an example without text. BadInput with file and line for neither name
    nor text, and for what the corpus reader `jsonl` refuses.
    """
    given = {key: scalar(source, line, key, record.get(key)) for key in ("name", "id", "text")}
    name = given["name"] or given["id"]
    if name:
        record = {**record, "name": name}
    if not (given["text"] or "").strip():
        if not name:
            found = f"neither a name nor a text, in the fields {', '.join(map(repr, sorted(record))) or 'none'}"
            remedy = 'The store tells them: attnstore sql STORE "select name, text from examples"'
            raise source.error(line, found, "a field 'name' or 'text' that says which example it is for", remedy)
        if name not in stored:
            return Example(name, "", where=source.where(line))
        row = stored[name]
        others = {part: row[part] for part in ("second", "target") if not record.get(part)}
        record = {**record, **others, "text": row["text"]}
    return usable(jsonl.example_of(source, line, record, fields))


def check_names(source: Source, items: Iterable[Example]) -> None:
    """Raises BadInput, with file and line, where a name is there twice."""
    before: dict[str, str] = {}
    for item in items:
        if item.name in before:
            line = int(item.where.rpartition(":")[2])
            raise source.error(line, f"the name {item.name!r} again, after {before[item.name]}", "one entry each")
        before[item.name] = item.where


def usable(item: Example | Skipped) -> Example:
    """The example. BadInput for one that a corpus would skip."""
    if isinstance(item, Skipped):
        raise BadInput(f"reading {item.where}", item.reason, "an annotated text")
    return item


def match(stored: Stored, items: Sequence[Example], doing: str) -> Matched:
    """Match each annotation of a file by the name that the file gives it, else by its text, raw or of its words joined.

    Where several examples have one text, the annotations of that text go to them in order, the last of them to those
    that are left. Names that were only made from file and line do not count: they say nothing about another corpus.
    BadInput where nothing matches.
    """
    found: dict[int, tuple[Mapping[str, Any], Example]] = {}
    others = []
    for item in items:
        if item.name in stored and item.name != item.where:
            row = stored[item.name]
            found[row["example"]] = (row, item)
        else:
            others.append(item)
    unmatched = _match_texts([row for row in stored.values() if row["example"] not in found], others, found)
    if not found:
        shown = ", ".join(item.name for item in items[:3]) + (", …" if len(items) > 3 else "")
        expected = "names or texts of its examples"
        raise BadInput(doing, f"no example of the store has the name or the text of {shown}", expected)
    return Matched(dict(sorted(found.items())), tuple(unmatched))


def _match_texts(
    rows: Sequence[Mapping[str, Any]], items: Sequence[Example], found: dict[int, tuple[Mapping[str, Any], Example]]
) -> list[str]:
    left: dict[str, deque[Mapping[str, Any]]] = {}
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
