"""This file cuts texts down to a budget of tokens, counting again after every cut."""

from collections.abc import Callable, Sequence

Spans = Callable[[str], Sequence[tuple[int, int]]]
"""The characters of each token of a text (end exclusive), without special tokens."""

Bounds = tuple[int, int]
"""First character and end (exclusive) of what stays of a text."""


def fit(texts: Sequence[str], spans: Spans, budget: int, drop_front: Callable[[], bool]) -> list[Bounds] | None:
    """What stays of each text so that together they have at most `budget` tokens; None if one would vanish.

    White space at the ends goes first. Then, token by token, the longer text (the later of two alike)
    loses its first token if `drop_front()` says so, else its last. The texts are cut at the characters of
    the tokens that are left and tokenized again, since a cut word may fall into other tokens, until they fit.
    """
    bounds = [(0, len(text)) for text in texts]
    while True:
        tokens = [spans(text[start:end]) for text, (start, end) in zip(texts, bounds, strict=True)]
        kept = [(0, len(part)) for part in tokens]
        if sum(map(_size, kept)) <= budget:
            return bounds
        trimmed = [stripped(text, *bound) for text, bound in zip(texts, bounds, strict=True)]
        if trimmed != bounds:
            bounds = trimmed
            continue
        while sum(map(_size, kept)) > budget:
            longer = max(range(len(kept)), key=lambda part: (_size(kept[part]), part))
            drop = _without_first if drop_front() else _without_last
            kept[longer] = drop(tokens[longer], *kept[longer])
            if not _size(kept[longer]):
                return None
        for part, (first, last) in enumerate(kept):
            start, end = bounds[part]
            cut_start = start + tokens[part][first][0] if first else start
            cut_end = start + tokens[part][last - 1][1] if last < len(tokens[part]) else end
            if (cut_start, cut_end) != (start, end):
                bounds[part] = stripped(texts[part], cut_start, cut_end)
                # Only empty tokens are left of it.
                if not _size(bounds[part]):
                    return None


def windows(text: str, spans: Spans, budget: int) -> list[Bounds] | None:
    """Consecutive pieces of `text` of at most `budget` tokens each, which leave out nothing but white space.

    A piece ends where white space precedes a token, the last such place that fits; in a piece without
    one, at the last token that fits. None if a single character has more tokens than the budget.
    """
    tokens = spans(text)
    found: list[Bounds] = []
    first, start = 0, 0
    while first < len(tokens):
        last = _last_that_fits(text, spans, budget, tokens, first, start)
        if last is None:
            return None
        end = _start_of(text, tokens, last)
        piece = stripped(text, start, end)
        if _size(piece):
            found.append(piece)
        first, start = last, end
    return found


def stripped(text: str, start: int, end: int) -> Bounds:
    """`start` and `end` moved inwards over white space."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _size(bounds: Bounds) -> int:
    return max(0, bounds[1] - bounds[0])


def _without_first(tokens: Sequence[Bounds], first: int, last: int) -> tuple[int, int]:
    # Tokens may be empty or share one character (bytes of an emoji): what is left must be a shorter text.
    start, end = tokens[first]
    first += 1
    while first < last and (tokens[first][0] < end or tokens[first][0] <= start):
        first += 1
    return first, last


def _without_last(tokens: Sequence[Bounds], first: int, last: int) -> tuple[int, int]:
    start, end = tokens[last - 1]
    last -= 1
    while last > first and (tokens[last - 1][1] > start or tokens[last - 1][1] >= end):
        last -= 1
    return first, last


def _last_that_fits(
    text: str, spans: Spans, budget: int, tokens: Sequence[Bounds], first: int, start: int
) -> int | None:
    """The token before which the piece from character `start` (token `first`) ends; None if nothing fits."""
    last: int | None = len(tokens)
    if len(tokens) - first > budget:
        last = last_break(text, tokens, first, first + budget)
    while last is not None:
        # A cut text may fall into more tokens than it was before.
        if len(spans(text[slice(*stripped(text, start, _start_of(text, tokens, last)))])) <= budget:
            return last
        last = last_break(text, tokens, first, last - 1)
    return None


def _start_of(text: str, tokens: Sequence[Bounds], token: int) -> int:
    return tokens[token][0] if token < len(tokens) else len(text)


def last_break(text: str, tokens: Sequence[Bounds], first: int, most: int) -> int | None:
    """The last token after `first`, up to `most`, before which the text may be cut; None if there is none.

    Where white space precedes a token, if there is such a place.
    """
    fallback = None
    for token in range(most, first, -1):
        start = tokens[token][0]
        if start < tokens[token - 1][1] or start <= tokens[first][0]:
            continue
        if text[start : start + 1].isspace() or text[start - 1].isspace():
            return token
        fallback = fallback or token
    return fallback
