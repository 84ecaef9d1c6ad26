"""This file parses texts that have no gold words, with a spaCy pipeline."""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Protocol

from attnstore.errors import BadInput, MissingExtra
from attnstore.text.example import Example, Link, Mention, Word
from attnstore.text.fields import nearest
from attnstore.text.places import words_at
from attnstore.text.splice import n_sentences
from attnstore.text.tree import mention_head, mention_type

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

PREFIX = "spacy:"
_BATCH = 64


class Parser(Protocol):
    """Something that fills in words. `facts` says what it is: name, version, scheme (of its relations), tool."""

    @property
    def facts(self) -> Mapping[str, str]: ...

    def annotate(self, examples: Iterable[Example]) -> Iterator[Example]: ...


def load_parser(source: str) -> Parser:
    """The parser that a recipe names: "spacy:NAME", NAME an installed pipeline of exactly that name.

    Raises `MissingExtra` without spaCy, `BadInput` for another source, for a pipeline that is not installed
    (saying which are) and for one that does not parse.
    """
    doing = f"loading the parser {source!r}"
    name = source.removeprefix(PREFIX)
    if name == source or not name:
        raise BadInput(doing, "no such source of words", "spacy:NAME")
    try:
        import spacy
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != "spacy":
            raise
        raise MissingExtra(doing, "spacy", "parse") from None
    installed = sorted(spacy.util.get_installed_models())
    if name not in installed:
        there = ", ".join(map(repr, installed)) or "none"
        raise BadInput(
            doing,
            f"no pipeline {name!r}; installed: {there}",
            "the name of an installed pipeline",
            nearest(name, installed) or f"Install it with: python -m spacy download {name}",
        )
    # Names of persons and places are not stored, and finding them costs as much as parsing.
    nlp = spacy.load(name, exclude=["ner"])
    if not nlp("A word.").has_annotation("DEP"):
        raise BadInput(doing, "the pipeline does not parse", "a pipeline with a dependency parser")
    # English pipelines are trained on ClearNLP's relations, others on Universal Dependencies.
    scheme = "clearnlp" if nlp.lang == "en" else "ud"
    facts = {
        "name": name,
        "version": str(nlp.meta["version"]),
        "scheme": scheme,
        "tool": f"spacy {metadata.version('spacy')}",
    }
    return _SpacyParser(facts, nlp)


@dataclass(frozen=True, slots=True)
class _SpacyParser:
    facts: Mapping[str, str]
    nlp: "Language"

    def annotate(self, examples: Iterable[Example]) -> Iterator[Example]:
        """The examples in order, their words replaced by those of the pipeline.

        Words of `second` are part 1 and number their sentences on from those of `text`. Mentions and
        links move to the new words at the same characters, mentions with a new head and type; one whose
        words have no place in the text, or whose place holds no new word, is left out. White
        space is no word: what depends on it depends on its governor. Raises `BadInput` for a text longer than the
        pipeline takes.
        """
        waiting: deque[Example] = deque()

        def texts() -> Iterator[str]:
            for example in examples:
                waiting.append(example)
                for text in _texts(example):
                    self._check_length(example, text)
                    yield text

        docs = self.nlp.pipe(texts(), batch_size=_BATCH, n_process=1)
        for first in docs:
            example = waiting.popleft()
            rest = itertools.islice(docs, len(_texts(example)) - 1)
            yield _annotated(example, [first, *rest])

    def _check_length(self, example: Example, text: str) -> None:
        if len(text) > self.nlp.max_length:
            raise BadInput(
                f"parsing {example.name!r} ({example.where})",
                f"a text of {len(text)} characters",
                f"at most {self.nlp.max_length}",
                "Cut the text first",
            )


def _texts(example: Example) -> list[str]:
    return [text for text in (example.text, example.second, example.target) if text is not None]


def _annotated(example: Example, docs: Sequence["Doc"]) -> Example:
    words = _words(docs[0], part=0, first_word=0, first_sentence=0)
    if example.second is not None:
        words += _words(docs[1], part=1, first_word=len(words), first_sentence=n_sentences(words))
    target_words = _words(docs[-1], part=0, first_word=0, first_sentence=0) if example.target is not None else []
    return replace(
        example,
        words=tuple(words),
        target_words=tuple(target_words),
        mentions=tuple(_moved_mentions(example, words)),
        links=tuple(_moved_links(example, words)),
    )


def _words(doc: "Doc", *, part: int, first_word: int, first_sentence: int) -> list[Word]:
    number = {token.i: first_word + word for word, token in enumerate(t for t in doc if not t.is_space)}
    sentence_of: dict[int, int] = {}
    sentence = first_sentence
    for span in doc.sents:
        members = [token.i for token in span if token.i in number]
        sentence_of.update(dict.fromkeys(members, sentence))
        sentence += bool(members)
    words = []
    for token in doc:
        if token.i not in number:
            continue
        governor = _governor(token)
        words.append(
            Word(
                token.text,
                token.idx,
                token.idx + len(token.text),
                lemma=token.lemma_ or None,
                upos=token.pos_ or None,
                xpos=token.tag_ or None,
                governor=None if governor is None else number[governor.i],
                deprel="root" if governor is None else token.dep_,
                sentence=sentence_of[token.i],
                part=part,
            )
        )
    return words


def _governor(token: "Token") -> "Token | None":
    """The nearest governor that is no white space; None for a root."""
    while token.head.i != token.i:
        token = token.head
        if not token.is_space:
            return token
    return None


def _moved_mentions(example: Example, words: Sequence[Word]) -> Iterator[Mention]:
    for mention in example.mentions:
        span = words_at(example.words[mention.start_word : mention.end_word], words)
        if span is not None:
            head = mention_head(words, range(*span))
            yield Mention(mention.cluster, *span, head, mention_type(words[head]))


def _moved_links(example: Example, words: Sequence[Word]) -> Iterator[Link]:
    for link in example.links:
        source = words_at(example.words[link.source_start_word : link.source_end_word], words)
        target = words_at(example.words[link.target_start_word : link.target_end_word], words)
        if source is not None and target is not None:
            yield Link(link.relation, *source, *target, core=link.core)
