"""This file holds the rules about dependency trees: what makes one unusable, which word is the head of a mention."""

from collections.abc import Sequence

from attnstore.text.example import Word


def first_fault(governors: Sequence[int | None]) -> tuple[int, str] | None:
    """The first word whose governor cannot be, with the reason; None if every word reaches a root.

    Governors are word indexes from 0, None for a root. Several roots are no fault.
    """
    for word, governor in enumerate(governors):
        if governor is None:
            continue
        if not 0 <= governor < len(governors):
            return word, "its governor is none of the words"
        if governor == word:
            return word, "it is its own governor"
    reaches_root = [False] * len(governors)
    for word in range(len(governors)):
        path: list[int] = []
        on_path: set[int] = set()
        at: int | None = word
        while at is not None and not reaches_root[at]:
            if at in on_path:
                return at, "its governors run in a circle"
            path.append(at)
            on_path.add(at)
            at = governors[at]
        for passed in path:
            reaches_root[passed] = True
    return None


def mention_head(words: Sequence[Word], span: Sequence[int]) -> int:
    """The head word of a mention over the words numbered in `span` (ascending, not empty).

    The leftmost word, punctuation aside, whose governor lies outside of the span; the last word of the
    span if there is none.
    """
    inside = set(span)
    for index in span:
        word = words[index]
        if word.deprel is not None and word.governor not in inside and not _is_punctuation(word):
            return index
    return span[-1]


def mention_type(head: Word) -> str | None:
    """ "pronoun", "proper" or "nominal" by the tags of the head word; None for a word without tags."""
    if head.xpos is None and head.upos is None:
        return None
    if head.xpos in ("PRP", "PRP$") or head.upos == "PRON":
        return "pronoun"
    if head.xpos in ("NNP", "NNPS") or head.upos == "PROPN":
        return "proper"
    return "nominal"


def _is_punctuation(word: Word) -> bool:
    return word.upos == "PUNCT" or word.deprel == "punct"
