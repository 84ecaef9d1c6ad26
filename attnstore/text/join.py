"""This file joins words by single spaces, which is how treebank words reached the model in Clark et al. 2019."""

from collections.abc import Sequence
from dataclasses import replace

from attnstore.errors import BadInput
from attnstore.text.example import Example, Word


def join_words(example: Example) -> Example:
    """The example with each text replaced by the forms of its words, single spaces between them.

    Every word gets offsets, also one that had no place in the raw text. A trigger goes from the first to the last word
    that it touched; it is lost where it touched none. Raises `BadInput` if a text has no words.
    """
    parts = 1 if example.second is None else 2
    words = list(example.words)
    texts = [_rejoined(example, words, part) for part in range(parts)]
    target_words = list(example.target_words)
    target = None if example.target is None else _rejoined(example, target_words, 0)
    return replace(
        example,
        text=texts[0],
        second=texts[1] if parts == 2 else None,
        target=target,
        words=tuple(words),
        target_words=tuple(target_words),
        trigger=_moved(example, words),
    )


def _moved(example: Example, words: Sequence[Word]) -> tuple[int, int] | None:
    """The trigger as characters of the joined text, in which `words` have their places."""
    if example.trigger is None:
        return None
    start, end = example.trigger
    touched = [
        (new.start_char or 0, new.end_char or 0)
        for old, new in zip(example.words, words, strict=True)
        if old.part == 0 and old.start_char is not None and old.end_char is not None
        if old.start_char < end and old.end_char > start
    ]
    return (touched[0][0], touched[-1][1]) if touched else None


def _rejoined(example: Example, words: list[Word], part: int) -> str:
    """The text of one part; renews the offsets of its words in place."""
    members = _members(words, part)
    if not members:
        raise BadInput(
            f"joining the words of {example.name!r} ({example.where})",
            "a text without words",
            "words for every text",
            "Set words.source, or feed = 'raw_text'",
        )
    text = ""
    for index in members:
        text += " " * bool(text)
        start = len(text)
        text += words[index].form
        words[index] = replace(words[index], start_char=start, end_char=len(text))
    return text


def _members(words: Sequence[Word], part: int) -> list[int]:
    return [index for index, word in enumerate(words) if word.part == part]
