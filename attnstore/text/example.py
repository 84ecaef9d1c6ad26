"""This file defines what a corpus reader yields: examples with words, mentions and links."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Side = Literal["source", "target"]


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word.

    `start_char`, `end_char` (exclusive) lie in the text of the word's own `part`; both are None when
    the word has no place of its own there (a contraction that does not split by characters).
    `governor` is the index of the syntactic head among the example's words of the same side; None is
    the root. `deprel` is None where the word is not annotated, or its governor was cut off with a window.
    """

    form: str
    start_char: int | None = None
    end_char: int | None = None
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    governor: int | None = None
    deprel: str | None = None
    sentence: int = 0
    part: int = 0


@dataclass(frozen=True, slots=True)
class Token:
    """One token that the corpus gives itself: a symbol of the model's vocabulary, with its place in its part's text.

    `start_char`, `end_char` (exclusive); tokens of a part are in the order of its text and do not overlap. `place` is
    the row and column of a code on its grid, for tokens that stand for parts of an image.
    """

    symbol: str
    start_char: int
    end_char: int
    part: int = 0
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention of an entity: words `start_word` to `end_word` (exclusive); `cluster` is the entity."""

    cluster: str
    start_word: int
    end_word: int
    head_word: int
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One annotated pair of word spans (ends exclusive), such as a frame element and the frame's target.

    `core` says whether it is a core element of the frame; None where the corpus does not tell.
    """

    relation: str
    source_start_word: int
    source_end_word: int
    target_start_word: int
    target_end_word: int
    core: bool | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One input of the model, as the corpus gives it.

    `text` is part 0, `second` part 1 of a pair, `target` the text of a decoder. `document` names the text it is a part
    of; clusters of mentions are unique within it. `words` belong to
    `text` and `second` together (see `Word.part`), `target_words` to `target`. `tokens`, those of part 0 first, are
    empty where the model's tokenizer is to split the texts. `image` is the file of an image, whose path is then the
    text. `trigger` is the first character of a trigger that was planted in `text`, and its end (exclusive). `where` is
    the file and line it came from, for messages.
    """

    name: str
    text: str
    second: str | None = None
    document: str | None = None
    target: str | None = None
    label: str | None = None
    split: str | None = None
    pair_id: str | None = None
    condition: str | None = None
    words: tuple[Word, ...] = ()
    target_words: tuple[Word, ...] = ()
    mentions: tuple[Mention, ...] = ()
    links: tuple[Link, ...] = ()
    tokens: tuple[Token, ...] = ()
    image: Path | None = None
    trigger: tuple[int, int] | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An example that cannot be used, kept as a row so that nothing is dropped silently."""

    name: str
    reason: str
    where: str = ""
