"""This file reads a file of mentions or links for the examples of a store: JSON Lines, or CoNLL-U with `Entity=`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnstore.errors import BadInput
from attnstore.job.annotation_match import (
    Stored,
    annotation_source,
    check_file,
    check_names,
    named_example,
    objects,
    usable,
)
from attnstore.text import conllu, gap, links
from attnstore.text.example import Example
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


def read_entries(stored: Stored, path: Path, what: What, doing: str) -> list[Entry]:
    """The entries of one file in order.

    An object has the list that is looked for (see `annotations.mentions_of`, `links_of`) and a name or text as in
    `annotation_match.named_example`, or is one of the corpus kinds `gap` (mentions) and `links`. BadInput, with file
    and line where there is one, for another ending, an object without the list, a name twice, a file without any
    object, and a treebank without any mention.
    """
    check_file(path, doing, ENDINGS[what])
    source = annotation_source(path)
    if path.suffix.lower() == ".conllu":
        entries = [_entry(source, item) for item in map(usable, conllu.read(source))]
        if not any(entry.example.mentions for entry in entries):
            raise BadInput(doing, "no mentions in it", "Entity= in the last column")
    else:
        entries = [_from_object(source, line, record, stored, what) for line, record in objects(source)]
        if not entries:
            raise BadInput(doing, f"no {what} in it: the file is empty", f"one object a line, with a list {what!r}")
    check_names(source, (entry.example for entry in entries))
    return entries


def _from_object(source: Source, line: int, record: Record, stored: Stored, what: What) -> Entry:
    if what in record and "words" not in record:
        # Spans without words wait for those of the store, which only the matched example has.
        bare = {key: value for key, value in record.items() if key in ("name", "id", "text", "second")}
        return _entry(source, named_example(source, line, bare, stored), record[what] or [])
    if what in record:
        return _entry(source, named_example(source, line, record, stored))
    if what == "mentions" and gap.OFFSET in record:
        return _entry(source, usable(gap.example_of(source, line, record)))
    if what == "links" and links.ELEMENTS in record:
        return _entry(source, usable(links.example_of(source, line, record)))
    found = f"no {what!r}, only {', '.join(map(repr, sorted(record))) or 'nothing'}"
    raise source.error(line, found, f"a list {what!r}")


def _entry(source: Source, example: Example, spans: object = None) -> Entry:
    line = int(example.where.rpartition(":")[2])
    return Entry(example, spans, lambda found, expected: source.error(line, found, expected))
