"""This file reads JSON Lines: one object a line, with texts and, if it has them, words, mentions and links."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from attnstore.errors import BadInput
from attnstore.text.annotations import links_of, mentions_of, words_of
from attnstore.text.example import Example, Skipped
from attnstore.text.fields import SCALARS, TRIGGER, picks, to_example
from attnstore.text.files import Source

FIELDS = (*SCALARS, TRIGGER, "words", "target_words", "mentions", "links")
"""What `columns` may rename; other keys of an object are left unread."""


def read(source: Source) -> Iterator[Example | Skipped]:
    """The objects of one file in order. Blank lines are passed over.

    Words are as `annotations.words_of` takes them. An object whose text is empty or null is
    skipped with a reason. Raises `BadInput` with file and line for broken JSON (with the column),
    anything but an object, a missing text, and annotation that does not fit.
    """
    for line, content in source.lines():
        if content.strip():
            yield example_of(source, line, record_of(source, line, content))


def record_of(source: Source, line: int, content: str) -> Mapping[str, object]:
    """The object on one line. Raises `BadInput` with file, line and column for anything else."""
    try:
        record: object = json.loads(content)
    except json.JSONDecodeError as error:
        raise source.error(line, f"column {error.colno}: {error.msg}", "one JSON object a line") from None
    except RecursionError:
        raise source.error(line, "JSON nested too deeply", "one JSON object a line") from None
    if not isinstance(record, dict):
        raise source.error(line, f"a {type(record).__name__}", "one JSON object a line")
    # Half of a surrogate pair can be escaped in JSON but neither tokenized nor stored.
    if "\\ud" in content.lower():
        try:
            json.dumps(record, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise source.error(line, "an escaped surrogate without its partner", "whole characters") from None
    return record


def example_of(
    source: Source, line: int, record: Mapping[str, object], fields: Sequence[str] = FIELDS
) -> Example | Skipped:
    """The example that an object describes, with its words, mentions and links; `fields` are those that count."""
    chosen = picks(source, line, record, fields)
    example = to_example(source, line, record, chosen)
    if isinstance(example, Skipped):
        return example

    def fail(found: str, expected: str) -> BadInput:
        return source.error(line, found, expected)

    def value(field: str) -> object:
        return record[chosen[field]] if field in chosen else None

    words = words_of(value("words"), (example.text, example.second), fail)
    return replace(
        example,
        words=words,
        target_words=words_of(value("target_words"), (example.target,), fail),
        mentions=mentions_of(value("mentions"), words, fail),
        links=links_of(value("links"), words, fail),
    )
