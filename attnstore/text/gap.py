"""This file reads ambiguous pronouns (GAP, Webster et al. 2018), one JSON object a line: a pronoun and two names.

    {"id": "…", "text": "Ida met Una when she left.", "pronoun": "she", "pronoun_offset": 17,
     "a": "Ida", "a_offset": 0, "a_coref": true, "b": "Una", "b_offset": 8, "b_coref": false}

Offsets count characters of the text. The corpus has no words, but mentions are spans of words: the reader splits the
text by signs and white space (`places.split_words`), so that windows, truncation and a parser treat these examples like
any other. With `words.source = "spacy:…"` the parser's words take their place and the mentions move to them.
"""

from collections.abc import Iterator

from attnstore.errors import BadInput
from attnstore.text.example import Example, Mention, Skipped, Word
from attnstore.text.files import Source
from attnstore.text.jsonl import record_of
from attnstore.text.places import split_words, words_over
from attnstore.text.typed import Fail, Record, number_of, text_of, truth_of

OFFSET = "pronoun_offset"
"""The key by which an object of this kind is known."""

_MENTIONS = {"pronoun": "pronoun", "a": "proper", "b": "proper"}
_PRONOUN = "pronoun"


def read(source: Source) -> Iterator[Example | Skipped]:
    """The items of one file in order, as `example_of` makes them. Blank lines are passed over."""
    for line, content in source.lines():
        if content.strip():
            yield example_of(source, line, record_of(source, line, content))


def example_of(source: Source, line: int, record: Record) -> Example | Skipped:
    """The example of one object, a document of its own, with three mentions in the order of the text.

    The cluster of the pronoun is "pronoun"; a name that corefers is in it, one that does not is alone in "a" or "b". An
    object whose text is empty is skipped with a reason. Raises `BadInput` with file and line for a mention that the
    text does not spell at its offset, and for values that are missing or of another type.
    """

    def fail(found: str, expected: str) -> BadInput:
        return source.error(line, found, expected)

    name = text_of("the object", record, "id", fail) or source.name(line)
    if "text" not in record:
        raise fail(f"there is no text, only {', '.join(map(repr, sorted(record))) or 'nothing'}", "the text")
    text = text_of("the object", record, "text", fail)
    if not text or not text.strip():
        return Skipped(name, "its text is empty", source.where(line))
    words = split_words(text)
    mentions = [_mention(key, record, text, words, fail) for key in _MENTIONS]
    mentions.sort(key=lambda mention: (mention.start_word, mention.end_word))
    return Example(name, text, document=name, words=words, mentions=tuple(mentions), where=source.where(line))


def _mention(key: str, record: Record, text: str, words: tuple[Word, ...], fail: Fail) -> Mention:
    form = text_of("the object", record, key, fail)
    start = number_of("the object", record, f"{key}_offset", fail)
    if not form or start is None:
        raise fail(f"the object has {key} {form!r} at {start}", f"{key} and {key}_offset")
    found = text[start : start + len(form)] if start >= 0 else ""
    if found != form:
        raise fail(f"at character {start}, where {key} {form!r} is to be, stands {found!r}", "its place in the text")
    span = words_over(words, 0, start, start + len(form))
    if span is None:
        raise fail(f"{key} is {form!r}", "a word")
    corefers = key == _PRONOUN or truth_of("the object", record, f"{key}_coref", fail)
    if corefers is None:
        raise fail(f"the object has no {key}_coref", "true or false")
    # Without a parse the head of a name is its last word, as in tree.mention_head.
    return Mention(_PRONOUN if corefers else key, *span, span[1] - 1, _MENTIONS[key])
