"""This file reads the tokens of one object of a corpus of ready-made maps, and finds their places in the text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attnstore.text.encoded import Encoded
from attnstore.text.files import Source as File

SPECIAL = (None, "cls", "sep", "bos", "eos", "mask", "pad", "other")
"""What `special` may say of a token."""

_SPECIAL, _PARTS = f"null or one of {', '.join(filter(None, SPECIAL))}", "null, 0, or 1 in a pair"


def encoded_of(file: File, line: int, record: Mapping[str, Any], prefix: str, text: str, second: str | None) -> Encoded:
    """The tokens of one side, from the keys `PREFIXtokens`, `PREFIXspecial` and so on.

    Spans that are not given are found in the text from left to right. BadInput, with file and line, for what does
    not fit the tokens or the text.
    """
    tokens = record.get(f"{prefix}tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise file.error(line, f"{prefix}tokens = {str(tokens)[:60]}", "a list of strings, one for each token")
    n_tokens = len(tokens)

    def column(name: str, default: Sequence[Any]) -> tuple[Any, ...]:
        value = record.get(f"{prefix}{name}", default)
        if not isinstance(value, list | tuple) or len(value) != n_tokens:
            raise file.error(line, f"{prefix}{name} does not match {prefix}tokens", f"a list of {n_tokens}")
        return tuple(value)

    def checked(name: str, default: Sequence[Any], allowed: Callable[[Any], bool], expected: str) -> tuple[Any, ...]:
        values = column(name, default)
        for index, value in enumerate(values):
            if not allowed(value):
                raise file.error(line, f"{prefix}{name}[{index}] = {str(value)[:60]}", expected)
        return values

    special = checked("special", [None] * len(tokens), lambda item: item in SPECIAL, _SPECIAL)
    texts = (text,) if second is None else (text, second)
    usual = [None if name is not None else 0 for name in special]
    parts = checked("parts", usual, lambda item: item is None or (_is_id(item) and item < len(texts)), _PARTS)
    if record.get(f"{prefix}spans") is None:
        spans = _found(tokens, special, parts, texts)
    else:
        given = checked("spans", [], lambda item: item is None or _is_span(item), "null, or [start, end] in characters")
        # Tokenizers give special tokens the empty span 0 to 0: they have no place in the text.
        spans = tuple(None if name is not None else span for name, span in zip(special, given, strict=True))
        for index, (span, part) in enumerate(zip(spans, parts, strict=True)):
            if span is not None and (part is None or span[1] > len(texts[part])):
                where = "no part of the text" if part is None else f"a text of {len(texts[part])} characters"
                raise file.error(line, f"{prefix}spans[{index}] = {span} in {where}", "a span inside of its text")
    return Encoded(
        ids=checked("token_ids", [0] * len(tokens), _is_id, "a number from 0"),
        texts=tuple(tokens),
        spans=tuple(None if span is None else (span[0], span[1]) for span in spans),
        parts=parts,
        type_ids=checked("type_ids", [part or 0 for part in parts], _is_id, "a number from 0"),
        special=special,
    )


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is_span(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_id, value)) and value[0] <= value[1]


def _found(
    tokens: Sequence[str], special: Sequence[str | None], parts: Sequence[int | None], texts: Sequence[str]
) -> tuple[tuple[int, int] | None, ...]:
    """Spans of tokens in their texts, from left to right; None for a token that is not found as written."""
    position, spans = [0, 0], list[tuple[int, int] | None]()
    for token, name, part in zip(tokens, special, parts, strict=True):
        piece = token.removeprefix("##").lstrip("\u0120\u2581")
        start = -1 if name is not None or part is None or not piece else texts[part].find(piece, position[part])
        if start < 0 or part is None:
            spans.append(None)
        else:
            position[part] = start + len(piece)
            spans.append((start, position[part]))
    return tuple(spans)
