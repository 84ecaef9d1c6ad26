"""This file assigns the tokens of a text to its words, by characters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.text.example import Word

IntArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which word each token belongs to.

    `word` [token]: an index into the words that were given, -1 for none. `n_tokens` and `aligned` are per
    word: how many tokens it has, and "none" (it has no token), "shared" (it has some, and one over it covers
    other words too) or "exact".
    """

    word: IntArray
    n_tokens: tuple[int, ...]
    aligned: tuple[str, ...]


def align(text: str, spans: Sequence[tuple[int, int] | None], words: Sequence[Word]) -> Alignment:
    """The alignment of one part: its `text`, the characters of each token (None for a special one or one of
    another part; ends exclusive) and the words of this part.

    White space at both ends of a span is left out first, since byte-level and sentence-piece tokenizers
    count the space before a word as part of its token. A token over several words belongs to the one it
    covers most of, the earlier on a tie. A token without a character of any word has -1, but
    space and empty tokens strictly within a word are that word's, so that the tokens of a word are
    neighbours. Words without offsets have no tokens. Words must not overlap. Linear in tokens and words.
    """
    placed = sorted(
        (word.start_char, word.end_char, index)
        for index, word in enumerate(words)
        if word.start_char is not None and word.end_char is not None
    )
    assigned = np.full(len(spans), -1, dtype=np.int32)
    n_tokens = [0] * len(words)
    shared = [False] * len(words)
    first = 0
    for token, span in enumerate(spans):
        if span is None:
            continue
        start, end = _trimmed(text, *span)
        # `first`: the first word that ends after the start of the token. Spans hardly ever step back.
        while first < len(placed) and placed[first][1] <= start:
            first += 1
        while first > 0 and placed[first - 1][1] > start:
            first -= 1
        best, involved = _largest_overlap(placed, first, start, end)
        if best is None:
            continue
        assigned[token] = best
        n_tokens[best] += 1
        if len(involved) > 1:
            for word in involved:
                shared[word] = True
    kinds = tuple(
        "none" if not count else "shared" if several else "exact"
        for count, several in zip(n_tokens, shared, strict=True)
    )
    return Alignment(assigned, tuple(n_tokens), kinds)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    left, right = start, end
    while left < right and text[left].isspace():
        left += 1
    while right > left and text[right - 1].isspace():
        right -= 1
    return (left, right) if left < right else (start, end)


def _largest_overlap(
    placed: Sequence[tuple[int, int, int]], first: int, start: int, end: int
) -> tuple[int | None, list[int]]:
    """The word with most characters in `start` to `end`, and every word that has any there."""
    best, most = None, 0
    involved: list[int] = []
    at = first
    if start == end:
        within = first < len(placed) and placed[first][0] < start
        return (placed[first][2], involved) if within else (None, involved)
    while at < len(placed) and placed[at][0] < end:
        overlap = min(end, placed[at][1]) - max(start, placed[at][0])
        involved.append(placed[at][2])
        if overlap > most:
            best, most = placed[at][2], overlap
        at += 1
    return best, involved
