"""This file names the kinds of corpora and reads one: every example in order, or the place where it is wrong."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attnstore.errors import BadInput
from attnstore.text import conllu, gap, images, jsonl, lines, links, pairs, repeated, table, tokens
from attnstore.text.example import Example, Skipped
from attnstore.text.fields import nearest
from attnstore.text.files import STDIN, Source, require_file
from attnstore.text.vocabulary import Vocabulary

Reader = Callable[[Source], Iterator[Example | Skipped]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Files of one kind, in order. `columns` renames input fields: {"text": "sentence1", "label": "gold"}.

    The path "-" is standard input. `unit` is "sentence", or "window" for sentences that are to be
    packed (`pack.pack_sentences`); reading gives sentences either way. `vocabulary`, the model's, is what the
    kinds "tokens" and "repeated_random" need. The latter has no files: `length`, `count` and `seed` say what is drawn.
    """

    kind: str
    paths: tuple[Path, ...]
    unit: str = "sentence"
    columns: Mapping[str, str] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None
    length: int = 50
    count: int = 16
    seed: int = 0


KINDS: Mapping[str, Reader] = {
    "lines": lines.read,
    "pairs": pairs.read,
    "conllu": conllu.read,
    "jsonl": jsonl.read,
    "table": table.read,
    "links": links.read,
    "gap": gap.read,
    "tokens": tokens.read,
    "images": images.read,
}
"""What a recipe may call a corpus, and who reads a file of it."""

DRAWN = (repeated.CONDITION,)
"""The kinds that have no files, since they are made up."""

_COLUMNS: Mapping[str, Sequence[str]] = {
    "pairs": pairs.FIELDS,
    "jsonl": jsonl.FIELDS,
    "table": table.FIELDS,
    "tokens": tokens.FIELDS,
    "images": images.FIELDS,
}


def read(corpus: Corpus) -> Iterator[Example | Skipped]:
    """The examples of all files in order, and what cannot be used as `Skipped`; read as they are asked for.

    Names are unique over the corpus: those that the corpus gives must differ (two alike raise
    `BadInput`), the others are "<file stem>:<line>", where a stem that was there before gets "#2".
    Raises `BadInput` at once for an unknown kind or column, no path, a path twice and a missing
    file; while reading, with file and line, for an empty file and whatever the reader of the kind says.
    """
    doing = f"reading a corpus of kind {corpus.kind!r}"
    known = (*KINDS, *DRAWN)
    if corpus.kind not in known:
        raise BadInput(doing, "no such kind", ", ".join(known), nearest(corpus.kind, known))
    allowed = _COLUMNS.get(corpus.kind, ())
    for name in corpus.columns:
        if name not in allowed:
            expected = ", ".join(allowed) or "no columns: this kind has no fields to rename"
            raise BadInput(doing, f"columns.{name}: no such field", expected, nearest(name, allowed))
    if corpus.kind in DRAWN:
        return repeated.draw(corpus.vocabulary, length=corpus.length, count=corpus.count, seed=corpus.seed)
    if not corpus.paths:
        raise BadInput(doing, "no file", "one path or more", "Does corpus.path match any file?")
    for path in corpus.paths:
        require_file(path)
    return _checked(KINDS[corpus.kind], _sources(corpus))


def _sources(corpus: Corpus) -> list[Source]:
    sources = []
    seen: set[Path] = set()
    stems: dict[str, int] = {}
    for path in corpus.paths:
        if path.resolve() in seen:
            raise BadInput(
                f"reading {path}",
                "the corpus lists it twice",
                "each file once",
                "Do two patterns of corpus.path match it?",
            )
        seen.add(path.resolve())
        stem = "stdin" if str(path) == STDIN else path.stem
        stems[stem] = stems.get(stem, 0) + 1
        unique = stem if stems[stem] == 1 else f"{stem}#{stems[stem]}"
        sources.append(Source(path, unique, corpus.columns, corpus.vocabulary))
    return sources


def _checked(reader: Reader, sources: Sequence[Source]) -> Iterator[Example | Skipped]:
    places: dict[str, str] = {}
    for source in sources:
        empty = True
        for item in reader(source):
            empty = False
            if item.name in places:
                raise BadInput(
                    f"reading {source.path}, line {item.where.rpartition(':')[2]}",
                    f"the name {item.name!r} again, after {places[item.name]}",
                    "names that are unique over the corpus",
                )
            places[item.name] = item.where
            yield item
        if empty:
            raise source.error(1, "nothing to read: the file is empty", "one example or more")
