"""This file reads frames, one JSON object a line: the tokens of a sentence, a target that evokes a frame, its elements.

    {"id": "…", "frame": "Giving", "tokens": ["Nadia", "gave", "keys"], "target": {"start": 1, "end": 2},
     "frame_elements": [{"name": "Donor", "core": true, "start": 0, "end": 1}]}

`start` and `end` (exclusive) count tokens. Each element makes a link from its span, the source, to the frame's target,
as in Kovaleva et al. 2019 (section 4.2).
"""

from collections.abc import Iterator, Sequence

from attnstore.errors import BadInput
from attnstore.text.example import Example, Link, Skipped, Word
from attnstore.text.files import Source
from attnstore.text.jsonl import record_of
from attnstore.text.typed import Fail, Record, list_of, object_of, span_of, text_of, truth_of

ELEMENTS = "frame_elements"
"""The key by which an object of this kind is known."""


def read(source: Source) -> Iterator[Example | Skipped]:
    """The sentences of one file in order, as `example_of` makes them. Blank lines are passed over."""
    for line, content in source.lines():
        if content.strip():
            yield example_of(source, line, record_of(source, line, content))


def example_of(source: Source, line: int, record: Record) -> Example | Skipped:
    """The example of one object: its tokens are the words, joined by single spaces; the frame is the label.

    An object without tokens is skipped with a reason. Raises `BadInput` with file and line for a token without a
    letter or sign, a span outside of the tokens, an element without a name, and values of another type.
    """

    def fail(found: str, expected: str) -> BadInput:
        return source.error(line, found, expected)

    name = text_of("the object", record, "id", fail) or source.name(line)
    if "tokens" not in record:
        raise fail(f"there are no tokens, only {', '.join(map(repr, sorted(record))) or 'nothing'}", "a list of tokens")
    tokens = list_of("tokens", record["tokens"], fail)
    if not tokens:
        return Skipped(name, "it has no tokens", source.where(line))
    words = _words(tokens, fail)
    return Example(
        name,
        " ".join(word.form for word in words),
        label=text_of("the object", record, "frame", fail) or None,
        words=words,
        links=_links(record, len(words), fail),
        where=source.where(line),
    )


def _words(tokens: Sequence[object], fail: Fail) -> tuple[Word, ...]:
    words: list[Word] = []
    start = 0
    for index, token in enumerate(tokens):
        if not isinstance(token, str) or not token.strip():
            raise fail(f"tokens[{index}] is {token!r}", "text that is not empty")
        words.append(Word(token, start, start + len(token)))
        start += len(token) + 1
    return tuple(words)


def _links(record: Record, count: int, fail: Fail) -> tuple[Link, ...]:
    target = span_of("target", object_of("target", record.get("target"), fail), "start", "end", count, fail)
    links = []
    for index, entry in enumerate(list_of(ELEMENTS, record.get(ELEMENTS), fail)):
        at = f"{ELEMENTS}[{index}]"
        element = object_of(at, entry, fail)
        name = text_of(at, element, "name", fail)
        if not name:
            raise fail(f"{at} has no name", "the name of the element")
        span = span_of(at, element, "start", "end", count, fail)
        links.append(Link(name, *span, *target, core=truth_of(at, element, "core", fail)))
    return tuple(links)
