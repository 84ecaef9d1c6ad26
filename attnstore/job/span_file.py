"""This file reads a file of mentions or links for the examples of a store: JSON Lines, or CoNLL-U with `Entity=`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnstore.errors import BadInput
from attnstore.job.annotation_match import check_file, usable
from attnstore.text import conllu, gap, jsonl, links
from attnstore.text.example import Example
from attnstore.text.fields import scalar
from attnstore.text.files import Source
from attnstore.text.typed import Fail, Record

What = Literal["mentions", "links"]

ENDINGS: dict[What, tuple[str, ...]] = {"mentions": (".conllu", ".jsonl"), "links": (".jsonl",)}
"""The endings of files that hold them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The mentions or links of one example, which is found by the name or the text of `example`.

    `spans` is the list of a JSON object, and counts the store's words; None where `example` has words of its own and
    the spans that count them. `fail` makes errors that name file and line.
    """

    example: Example
    spans: object
    fail: Fail


def read_entries(path: Path, what: What, doing: str) -> list[Entry]:
    """The entries of one file in order.

    An object has the list that is looked for (see `annotations.mentions_of`, `links_of`), or is one of the corpus kinds
    `gap` (mentions) and `links`. BadInput, with file and line where there is one, for another ending, an object
    without the list, or without name and text, a name twice, and a file without any mention.
    """
    check_file(path, doing, ENDINGS[what])
    entries: dict[str, Entry] = {}
    for entry in _sentences(path) if path.suffix.lower() == ".conllu" else _objects(path, what):
        before = entries.setdefault(entry.example.name, entry)
        if before is not entry:
            raise entry.fail(f"the name {entry.example.name!r} again, after {before.example.where}", "one entry each")
    if not any(entry.spans is not None or getattr(entry.example, what) for entry in entries.values()):
        raise BadInput(doing, f"no {what} in it", "Entity= in the last column" if what == "mentions" else "links")
    return list(entries.values())


def _sentences(path: Path) -> Iterator[Entry]:
    source = Source(path, path.stem)
    for item in map(usable, conllu.read(source)):
        yield Entry(item, None, _failing(source, int(item.where.rpartition(":")[2])))


def _objects(path: Path, what: What) -> Iterator[Entry]:
    source = Source(path, path.stem)
    for line, content in source.lines():
        if content.strip():
            yield _entry(source, line, jsonl.record_of(source, line, content), what)


def _entry(source: Source, line: int, record: Record, what: What) -> Entry:
    fail = _failing(source, line)
    if what in record and "words" not in record:
        return Entry(_named(source, line, record), record[what] or [], fail)
    if what in record:
        item = jsonl.example_of(source, line, record)
    elif what == "mentions" and gap.OFFSET in record:
        item = gap.example_of(source, line, record)
    elif what == "links" and links.ELEMENTS in record:
        item = links.example_of(source, line, record)
    else:
        raise fail(f"no {what!r}, only {', '.join(map(repr, sorted(record))) or 'nothing'}", f"a list {what!r}")
    return Entry(usable(item), None, fail)


def _named(source: Source, line: int, record: Record) -> Example:
    """An example that is there to be found: its name, or else its text."""
    found = {key: scalar(source, line, key, record.get(key)) for key in ("name", "id", "text", "second")}
    name = found["name"] or found["id"]
    if not name and not found["text"]:
        raise source.error(line, "neither a name nor a text", "one of them, as the store has it")
    where = source.where(line)
    return Example(name or source.name(line), found["text"] or "", second=found["second"], where=where)


def _failing(source: Source, line: int) -> Fail:
    return lambda found, expected: source.error(line, found, expected)
