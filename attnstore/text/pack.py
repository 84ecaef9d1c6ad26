"""This file makes examples that fill the model's length: sentences packed, paragraphs paired, long texts cut."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from attnstore.errors import BadInput
from attnstore.text.example import Example, Skipped
from attnstore.text.fit import Bounds, Spans, fit, windows
from attnstore.text.given import given_first, given_windows
from attnstore.text.splice import cut, cut_each, cut_target, joined, paired, require_single

LEFT_OVER = "a paragraph left over at the end of its document; a pair needs two"
TOO_SHORT = "the pair cannot be cut to the budget of tokens"


def pack_sentences(examples: Iterable[Example], spans: Spans, budget: int) -> Iterator[Example]:
    """Consecutive whole sentences of one document, a space between them, as long as `budget` tokens hold them.

    An example of several sentences is named "<first>..<last>"; see `splice.joined` for the rest. A sentence
    longer than the budget comes alone and as it is, as does one that has no document. Raises `BadInput`
    for a pair or an example with a target.
    """
    gathered: list[Example] = []
    total = 0
    for example in examples:
        require_single(example, "packing sentences")
        count = len(spans(example.text))
        if gathered and (total + count > budget or not _same_document(gathered[-1], example)):
            yield from _packed(gathered, spans, budget)
            gathered, total = [], 0
        gathered.append(example)
        total += count
    yield from _packed(gathered, spans, budget)


def pack_pairs(paragraphs: Iterable[Example], spans: Spans, budget: int, seed: int = 0) -> Iterator[Example | Skipped]:
    """Pairs of stretches of text as in Clark et al. 2019: `text` [SEP] `second`, at most `budget` tokens together.

    Paragraphs of one document are gathered until they have `budget` tokens (the model's length less the
    special tokens) and are two or more, and cut into the two texts at a random boundary between paragraphs.
    While the pair is too long, its longer text loses a token, the first or the last with probability 1/2.
    What a document has left at its end makes a shorter pair; a single paragraph is skipped with a reason.
    A pair depends on its own paragraphs and `seed` alone, not on those before it. Raises `BadInput` for
    a paragraph that is a pair or has a target.
    """
    gathered: list[Example] = []
    total = 0
    for paragraph in paragraphs:
        require_single(paragraph, "pairing paragraphs")
        if gathered and not _same_document(gathered[-1], paragraph):
            yield _pair(gathered, spans, budget, seed)
            gathered, total = [], 0
        count = len(spans(paragraph.text))
        if not count:
            yield Skipped(paragraph.name, "the paragraph has no tokens", paragraph.where)
            continue
        gathered.append(paragraph)
        total += count
        if total >= budget and len(gathered) > 1:
            yield _pair(gathered, spans, budget, seed)
            gathered, total = [], 0
    if gathered:
        yield _pair(gathered, spans, budget, seed)


def cut_windows(example: Example, spans: Spans, budget: int) -> list[Example]:
    """The example itself if it has at most `budget` tokens, else windows of its text named "<name>#1", "#2", …

    Windows follow one another without overlap and are cut at white space where there is any (see
    `fit.windows`); words, mentions and links go with the window that holds them (see `splice.cut_each`).
    Tokens that the example brings are what is counted, and stay as they are (see `given.given_windows`).
    Raises `BadInput` for a pair or an example with a target, and for a budget that cannot hold a
    single character.
    """
    if len(example.tokens or spans(example.text)) <= budget:
        return [example]
    require_single(example, "cutting into windows")
    cuts = given_windows(example, budget) if example.tokens else _windows(example, spans, budget)
    if cuts is None:
        raise _too_small(example, budget)
    return [replace(window, name=f"{example.name}#{number}") for number, window in enumerate(cuts, start=1)]


def truncate(example: Example, spans: Spans, budget: int, target_budget: int | None = None) -> Example:
    """The example with the first tokens of its text, at most `budget`; a pair loses the end of its longer text.

    `budget` counts both texts of a pair together. The target keeps its first `target_budget` tokens, all
    of them without one. Words, mentions and links stay as in `splice.cut_each`. The example itself comes back
    if nothing is too long. Raises `BadInput` for a budget that leaves a text without a token.
    """
    if example.tokens:
        shorter = given_first(example, budget)
        if shorter is None:
            raise _too_small(example, budget)
        return shorter
    texts = [example.text] if example.second is None else [example.text, example.second]
    bounds = _first_tokens(example, texts, spans, budget)
    if bounds is not None:
        example = cut(example, bounds)
    if target_budget is not None and example.target is not None:
        target = _first_tokens(example, [example.target], spans, target_budget)
        if target is not None:
            example = cut_target(example, *target[0])
    return example


def _windows(example: Example, spans: Spans, budget: int) -> list[Example] | None:
    pieces = windows(example.text, spans, budget)
    return None if pieces is None else cut_each(example, [[piece] for piece in pieces])


def _first_tokens(example: Example, texts: Sequence[str], spans: Spans, budget: int) -> list[Bounds] | None:
    """What stays of the texts, None if they are short enough."""
    bounds = fit(texts, spans, budget, lambda: False)
    if bounds is None:
        raise _too_small(example, budget)
    whole = [(0, len(text)) for text in texts]
    return None if bounds == whole else bounds


def _packed(sentences: Sequence[Example], spans: Spans, budget: int) -> Iterator[Example]:
    """The sentences, joined as far as `budget` allows, counted anew: a joined text may have other tokens."""
    first = 0
    while first < len(sentences):
        last = len(sentences)
        example = joined(sentences[first:last])
        while last > first + 1 and len(spans(example.text)) > budget:
            last -= 1
            example = joined(sentences[first:last])
        yield example
        first = last


def _pair(paragraphs: Sequence[Example], spans: Spans, budget: int, seed: int) -> Example | Skipped:
    first, last = paragraphs[0], paragraphs[-1]
    if len(paragraphs) < 2:
        return Skipped(first.name, LEFT_OVER, first.where)
    # Seeded by a string, which Python hashes alike in every process.
    chance = random.Random(f"{seed} {first.name}")
    boundary = chance.randrange(1, len(paragraphs))
    pair = paired(joined(paragraphs[:boundary]), joined(paragraphs[boundary:]))
    pair = replace(pair, name=f"{first.name}..{last.name}")
    texts = [pair.text, pair.second or ""]
    bounds = fit(texts, spans, budget, lambda: chance.random() < 0.5)
    if bounds is None:
        return Skipped(pair.name, TOO_SHORT, pair.where)
    return cut(pair, bounds)


def _same_document(before: Example, example: Example) -> bool:
    return example.document is not None and example.document == before.document


def _too_small(example: Example, budget: int) -> BadInput:
    return BadInput(
        f"cutting {example.name!r} ({example.where}) to {budget} tokens",
        "a text would be left without a token",
        "a larger budget",
        "Raise encode.max_length",
    )
