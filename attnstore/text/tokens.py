"""This file reads JSON Lines whose objects bring their own tokens, looked up in the model's vocabulary."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from attnstore.errors import BadInput
from attnstore.text import jsonl
from attnstore.text.example import Example, Skipped, Token
from attnstore.text.fields import nearest
from attnstore.text.files import Source
from attnstore.text.vocabulary import Vocabulary

_SIDES = ("text", "second")
_TOKENS = {"text": ("tokens", "ids"), "second": ("second_tokens", "second_ids")}
_MARKS = "\u0120\u2581"
"""Byte-level and metaspace tokenizers spell the space before a word with these."""

_GRID = ("rows", "cols")

FIELDS = (
    *(name for name in jsonl.FIELDS if not name.startswith("target")),
    *(*_TOKENS["text"], *_TOKENS["second"], *_GRID),
)
"""What `columns` may rename; other keys of an object are left unread."""


def read(source: Source) -> Iterator[Example | Skipped]:
    """The objects of one file in order. Blank lines are passed over.

    `tokens` (symbols) or `ids` (numbers) are one text, `second_tokens` or `second_ids` the second of a pair, without
    the special tokens that go round them. A `text` holds them in order, a leading "##", "\u0120" or "\u2581" aside;
    where there is none, it is the tokens with single spaces between them. `rows` and `cols` are the places of the first
    text's tokens on a grid, from 0, for codes of an image; null for a token without one. The other keys are those of
    `jsonl`, without a target. An object without a token is skipped with a reason. Raises `BadInput` with file and line
    for a symbol or id that the vocabulary does not have, a token that is not in its text, places that do not fit the
    tokens, and whatever `jsonl.read` says.
    """
    if source.vocabulary is None:
        raise BadInput(f"reading {source.path}", "no vocabulary to look its tokens up in", "that of a model")
    for line, content in source.lines():
        if content.strip():
            yield _example(source, line, jsonl.record_of(source, line, content), source.vocabulary)


def _example(source: Source, line: int, record: Mapping[str, object], vocabulary: Vocabulary) -> Example | Skipped:
    symbols = {side: _symbols(source, line, record, side, vocabulary) for side in _SIDES}
    filled = dict(record)
    for side, found in symbols.items():
        if found is not None and side not in source.columns and record.get(side) is None:
            filled[side] = " ".join(found)
    example = jsonl.example_of(source, line, filled, FIELDS)
    if isinstance(example, Skipped):
        return example
    if (example.second is None) != (symbols["second"] is None):
        raise source.error(
            line,
            "a second text without its tokens" if example.second else "tokens of a second text that is null",
            "both of them or none",
            "Give second_tokens or second_ids",
        )
    tokens: list[Token] = []
    for part, (side, text) in enumerate(zip(_SIDES, (example.text, example.second), strict=True)):
        found = symbols[side]
        if found is None or text is None:
            continue
        if not found:
            return Skipped(example.name, f"its {side} has no tokens", example.where)
        made = side not in source.columns and record.get(side) is None
        tokens += _joined(found, part) if made else _placed(source, line, _TOKENS[side][0], found, text, part)
    places = _grid(source, line, record, len(symbols["text"] or ()))
    tokens[: len(places)] = [replace(token, place=place) for token, place in zip(tokens, places, strict=False)]
    return replace(example, tokens=tuple(tokens))


def _grid(source: Source, line: int, record: Mapping[str, object], length: int) -> Sequence[tuple[int, int] | None]:
    """The places of the first text's tokens; empty where the object has none."""
    lists = []
    for field in _GRID:
        key = source.columns.get(field, field)
        value = record.get(key)
        if value is not None:
            if not isinstance(value, list) or len(value) != length or not all(map(_is_place, value)):
                expected = f"a list of {length}, one for each token: numbers from 0, or null"
                raise source.error(line, f"{key} = {str(value)[:60]}", expected)
            lists.append(value)
    if not lists:
        return ()
    if len(lists) == 1 or any((row is None) != (col is None) for row, col in zip(*lists, strict=True)):
        raise source.error(line, "a row without a column, or a column without a row", "both or neither for each token")
    return [None if row is None else (row, col) for row, col in zip(*lists, strict=True)]


def _is_place(item: object) -> bool:
    return item is None or (isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**31)


def _symbols(
    source: Source, line: int, record: Mapping[str, object], side: str, vocabulary: Vocabulary
) -> Sequence[str] | None:
    """The symbols of one side; None for a second text that is not there."""
    keys = [source.columns.get(field, field) for field in _TOKENS[side]]
    given = [key for key in keys if record.get(key) is not None]
    if not given and side == "second":
        return None
    if len(given) != 1:
        raise source.error(
            line,
            " and ".join(map(repr, given)) or f"neither {keys[0]!r} nor {keys[1]!r}",
            "one of them",
            "" if given else nearest(keys[0], record) or "Name the key that holds the tokens: columns.tokens = …",
        )
    (key,) = given
    value = record[key]
    if not isinstance(value, list):
        raise source.error(line, f"{key!r} is a {type(value).__name__}", "a list")
    of_ids = key == keys[1]
    symbols = []
    for index, item in enumerate(value):
        symbol = _of_id(item, vocabulary) if of_ids else _known(item, vocabulary)
        if symbol is None:
            raise _unknown(source, line, f"{key}[{index}]", item, vocabulary, of_ids=of_ids)
        if symbol in vocabulary.put_round:
            raise source.error(
                line,
                f"{key}[{index}] is {symbol!r}",
                "tokens without the special ones, which are put round them",
                "Leave it out",
            )
        symbols.append(symbol)
    return symbols


def _known(item: object, vocabulary: Vocabulary) -> str | None:
    return item if isinstance(item, str) and item and item in vocabulary.ids else None


def _of_id(item: object, vocabulary: Vocabulary) -> str | None:
    return vocabulary.symbols.get(item) if isinstance(item, int) and not isinstance(item, bool) else None


def _unknown(source: Source, line: int, at: str, item: object, vocabulary: Vocabulary, *, of_ids: bool) -> BadInput:
    if of_ids:
        return source.error(line, f"{at} is {item!r}", f"an id of the model's vocabulary of {len(vocabulary.ids)}")
    if not isinstance(item, str):
        return source.error(line, f"{at} is {item!r}", "a symbol as a string", "Numbers belong under ids")
    return source.error(
        line,
        f"{at} is {item!r}",
        f"one of the {len(vocabulary.ids)} symbols of the model's vocabulary",
        nearest(item, vocabulary.ids) or "Split the text as the model's makers did, or give its symbol for the unknown",
    )


def _joined(symbols: Sequence[str], part: int) -> Iterator[Token]:
    """The tokens of a text that is made of them, with single spaces between."""
    start = 0
    for symbol in symbols:
        yield Token(symbol, start, start + len(symbol), part)
        start += len(symbol) + 1


def _placed(source: Source, line: int, name: str, symbols: Sequence[str], text: str, part: int) -> Iterator[Token]:
    """The tokens at their places in a text that came with them, from left to right."""
    end = 0
    for index, symbol in enumerate(symbols):
        spelled = symbol
        start = text.find(spelled, end)
        if start < 0:
            spelled = symbol.removeprefix("##").lstrip(_MARKS)
            start = text.find(spelled, end)
        if start < 0:
            raise source.error(
                line,
                f"{name}[{index}], {symbol!r}, is not in the text from character {end} on",
                "tokens in the order of the text, spelled as there",
                "Leave the text out: it is then the tokens with spaces between them",
            )
        end = start + len(spelled)
        yield Token(symbol, start, end, part)
