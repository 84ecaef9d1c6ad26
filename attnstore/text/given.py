"""This file cuts examples whose tokens the corpus gives: no text is tokenized again."""

from collections.abc import Sequence
from dataclasses import replace

from attnstore.text.example import Example, Token
from attnstore.text.fit import Bounds, last_break, stripped
from attnstore.text.splice import cut_each


def given_windows(example: Example, budget: int) -> list[Example] | None:
    """Consecutive windows of at most `budget` tokens of an example with one text, which together hold every token.

    A window ends where white space precedes a token, the last such place that fits; else at the last token that fits.
    Texts leave out nothing but white space. Words, mentions and links go along as in `splice.cut_each`. None for a
    budget below 1.
    """
    if budget < 1:
        return None
    tokens, starts, last = example.tokens, [0], len(example.tokens)
    spans = [(token.start_char, token.end_char) for token in tokens]
    while last - starts[-1] > budget:
        most = starts[-1] + budget
        starts.append(last_break(example.text, spans, starts[-1], most) or most)
    groups = [tokens[first:end] for first, end in zip(starts, [*starts[1:], last], strict=True)]
    # Characters that no token covers stay with the window before them.
    edges = [0, *(group[0].start_char for group in groups[1:]), len(example.text)]
    bounds = [
        _stripped(example.text, start, end, group) for start, end, group in zip(edges, edges[1:], groups, strict=False)
    ]
    windows = cut_each(example, [[bound] for bound in bounds])
    return [
        replace(window, tokens=tuple(_moved(token, start) for token in group))
        for window, group, (start, _) in zip(windows, groups, bounds, strict=True)
    ]


def given_first(example: Example, budget: int) -> Example | None:
    """The example with its first tokens, at most `budget`; None if a text would be left without one.

    Of a pair the longer text (the later of two alike) loses its last token until both fit together. Words, mentions
    and links stay as in `splice.cut_each`.
    """
    texts = [example.text] if example.second is None else [example.text, example.second]
    parts = [[token for token in example.tokens if token.part == part] for part in range(len(texts))]
    counts = [len(part) for part in parts]
    while sum(counts) > budget:
        counts[max(range(len(counts)), key=lambda part: (counts[part], part))] -= 1
    if not all(counts):
        return None
    bounds = [
        (0, len(text) if count == len(part) else part[count - 1].end_char)
        for text, part, count in zip(texts, parts, counts, strict=True)
    ]
    kept = [token for part, count in zip(parts, counts, strict=True) for token in part[:count]]
    return replace(cut_each(example, [bounds])[0], tokens=tuple(kept))


def _stripped(text: str, start: int, end: int, tokens: Sequence[Token]) -> Bounds:
    """The bounds without white space at both ends, unless a token is white space."""
    first, last = stripped(text, start, end)
    return min(first, tokens[0].start_char), max(last, tokens[-1].end_char)


def _moved(token: Token, start: int) -> Token:
    """The token with its characters counted from `start`."""
    return replace(token, start_char=token.start_char - start, end_char=token.end_char - start)
