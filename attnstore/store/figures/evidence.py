"""This file makes sentences with lines from a word to the word that a head predicts for it."""

from dataclasses import replace

from attnstore.store.figures.panels import Link, Sentence, Sentences
from attnstore.store.figures.rows import Rows

AROUND = 3  # the words that are shown on either side of a link


def evidence(rows: Rows, title: str) -> list[Sentences]:
    """Each sentence once, with a link for each row that speaks of it; Clark et al. 2019, figure 5.

    `sentence` is a list of words, or words with a space between them. Places count from 0 at the word numbered
    `start`. A place outside the sentence is not drawn.
    """
    roles = ("example", "sentence", "start", "word", "predicted", "gold", "weight", "correct")
    found: dict[tuple[object, str, int], Sentence] = {}
    for row in zip(*map(rows.values, roles), strict=True):
        example, sentence, start, word, predicted, gold, weight, correct = row
        first = _whole(start) or 0
        words = sentence.split(" ") if isinstance(sentence, str) else list(map(str, _items(sentence)))
        key = (example, " ".join(words), first)
        shown = found.setdefault(key, Sentence(words, []))
        at, to, right = (_place(place, first, len(words)) for place in (word, predicted, gold))
        if at is None:
            continue
        number = float(weight) if isinstance(weight, int | float) else float("nan")
        is_correct = bool(correct) if correct is not None else (to == right if right is not None else None)
        found[key] = Sentence(words, [*shown.links, Link(at, to, right, number, is_correct)])
    return [Sentences(title, [_near(sentence) for sentence in found.values()])]


def _near(sentence: Sentence) -> Sentence:
    """The sentence with the words around its links only; of a sentence without links, all."""
    spans = [
        [place for place in (link.word, link.predicted, link.gold) if place is not None] for link in sentence.links
    ]
    near = {place for span in spans for place in range(min(span) - AROUND, max(span) + AROUND + 1)}
    words: list[str] = []
    moved: dict[int | None, int] = {}
    for place, word in enumerate(sentence.words):
        if place in near or not spans:
            moved[place] = len(words)
            words.append(word)
        elif not words or place - 1 in near:
            words.append("…")
    links = [
        replace(link, word=moved[link.word], predicted=moved.get(link.predicted), gold=moved.get(link.gold))
        for link in sentence.links
    ]
    return Sentence(words, links)


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int) else None


def _place(value: object, start: int, length: int) -> int | None:
    """The place in the sentence of the word of that number."""
    number = _whole(value)
    return number - start if number is not None and 0 <= number - start < length else None
