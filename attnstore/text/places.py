"""This file finds words by their characters: those of a stretch of text, and those that lie where other words lay."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from attnstore.text.example import Word

_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text that has none: runs of letters, digits and underscores, and every other sign by itself.

    They have characters and no tags: a parser that knows the language replaces them.
    """
    return tuple(Word(found.group(), found.start(), found.end()) for found in _WORD.finditer(text))


def words_over(words: Sequence[Word], part: int, start: int, end: int) -> tuple[int, int] | None:
    """The words (end exclusive) with a character within `start` to `end` (exclusive) of a part; None if there are none.

    Every word has a place, and words lie in the order of the text.
    """
    first = bisect_right(words, (part, start), key=lambda word: (word.part, word.end_char or 0))
    last = bisect_left(words, (part, end), key=lambda word: (word.part, word.start_char or 0))
    return (first, last) if first < last else None


def words_at(old: Sequence[Word], words: Sequence[Word]) -> tuple[int, int] | None:
    """The words (end exclusive) over the characters of `old`, words of one part; None if there are none."""
    starts = [word.start_char for word in old if word.start_char is not None]
    ends = [word.end_char for word in old if word.end_char is not None]
    return words_over(words, old[0].part, min(starts), max(ends)) if starts and ends else None
