"""This file brings the examples of a text corpus into the shape in which the model reads them."""

import atexit
import dataclasses
import glob
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from attnstore.errors import BadInput
from attnstore.job.recipe import Recipe
from attnstore.job.source import Prepared
from attnstore.text.corpus import Corpus, read
from attnstore.text.encoded import Encoded
from attnstore.text.example import Example, Skipped, Token
from attnstore.text.join import join_words
from attnstore.text.pack import cut_windows, pack_pairs, pack_sentences, truncate
from attnstore.text.repeated import CONDITION
from attnstore.text.vocabulary import Vocabulary

STDIN_FOLDER = "attnstore-stdin-"
"""How the name of the folder begins that holds a corpus from standard input while the program runs."""

Annotate = Callable[[Iterable[Example]], Iterator[Example]]


class ImageEncoder(Protocol):
    """What preparing needs of a model that reads images."""

    def __len__(self) -> int:
        """Tokens of an image."""
        ...

    def encode(self, path: Path) -> Encoded:
        """The tokens of an image."""
        ...


class Tokenizer(Protocol):
    """What preparing needs of a tokenizer."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The symbols that `encode_tokens` takes."""
        ...

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Characters of each token of a text, without special tokens."""
        ...

    def n_special(self, pair: bool) -> int:
        """Special tokens that go round one text, or a pair."""
        ...

    def encode(self, text: str, second: str | None = None, *, part_ids: str = "true") -> Encoded:
        """The tokens of a text or a pair as the model reads them."""
        ...

    def encode_tokens(self, tokens: Sequence[Token], *, part_ids: str = "true") -> Encoded:
        """Ready-made tokens of a text or a pair, with what goes round them."""
        ...

    def encode_target(self, text: str) -> Encoded:
        """The tokens of a text as the model's decoder reads them."""
        ...


def corpus_paths(recipe: Recipe) -> tuple[Path, ...]:
    """The files of a recipe's corpus: globs resolved and sorted, relative to the recipe. BadInput for no match."""
    found: list[Path] = []
    for pattern in recipe.corpus.path:
        if pattern == "-":
            found.append(_spooled_stdin(recipe.corpus.kind))
            continue
        place = recipe.folder / pattern
        # A file may itself have a name with such letters.
        if any(letter in pattern for letter in "*?[") and not place.exists():
            matches = sorted(glob.glob(pattern, root_dir=recipe.folder, recursive=True))
            if not matches:
                raise BadInput(
                    "looking for the corpus",
                    f"no file matches {pattern}",
                    f"files, as seen from the recipe's folder {recipe.folder.absolute()}",
                    "Change corpus.path, or give a full path with --set corpus.path=…",
                )
            found += [recipe.folder / match for match in matches]
        else:
            found.append(place)
    return tuple(found)


def _spooled_stdin(kind: str) -> Path:
    # A corpus is read twice: once to plan, once to run. The name of the file becomes part of the examples' names.
    folder = Path(tempfile.mkdtemp(prefix=STDIN_FOLDER))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    first = sys.stdin.buffer.readline()
    table = ".parquet" if first.startswith(b"PAR1") else ".tsv" if b"\t" in first else ".csv"
    objects = dict.fromkeys(("jsonl", "links", "gap", "tokens", "arrays"), ".jsonl")
    suffixes = {"conllu": ".conllu", "table": table, **objects}
    path = folder / f"stdin{suffixes.get(kind, '.txt')}"
    with path.open("wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


class ImagePreparer:
    """Reads the images of one recipe; an image that cannot be read is skipped with the reason.

    BadInput for keys that are about texts: an image has no words, and as many tokens as the model gives it.
    """

    def __init__(self, recipe: Recipe, encoder: ImageEncoder) -> None:
        for key, value, wanted in (
            ("words.source", recipe.words.source, "none"),
            ("encode.max_length", recipe.encode.max_length, 0),
        ):
            if value != wanted:
                raise BadInput("preparing images", f"{key} = {value!r}", f"{wanted!r}: that is about texts")
        self.encoder, self.longest = encoder, len(encoder)
        self.corpus = Corpus("images", corpus_paths(recipe), columns=recipe.corpus.columns)

    def examples(self) -> Iterator[Prepared | Skipped]:
        """The corpus in order."""
        for item in read(self.corpus):
            if isinstance(item, Skipped) or item.image is None:
                yield item if isinstance(item, Skipped) else Skipped(item.name, "it has no image", item.where)
                continue
            try:
                yield Prepared(item, self.encoder.encode(item.image))
            except BadInput as error:
                yield Skipped(item.name, error.found, item.where)


class Preparer:
    """Reads, joins, packs, cuts and tokenizes the examples of one recipe.

    `annotate` adds a parser's words; it runs here only if the words are fed joined, since then they
    decide the text.
    """

    def __init__(self, recipe: Recipe, tokenizer: Tokenizer, longest: int, annotate: Annotate | None) -> None:
        self.recipe, self.tokenizer, self.longest, self.annotate = recipe, tokenizer, longest, annotate
        keys = recipe.corpus
        vocabulary = tokenizer.vocabulary if keys.kind in ("tokens", CONDITION) else None
        drawn = {"length": keys.length, "count": keys.count, "seed": keys.seed}
        self.corpus = Corpus(keys.kind, corpus_paths(recipe), keys.unit, keys.columns, vocabulary, **drawn)
        if keys.kind == CONDITION:
            self._check_random()

    def examples(self) -> Iterator[Prepared | Skipped]:
        """The corpus in order, each example short enough for the model."""
        stream: Iterator[Example | Skipped] = map(self._with_wanted_words, read(self.corpus))
        if self.recipe.words.feed == "joined_words":
            stream = self._joined(stream)
        keys, skipped = self.recipe.corpus, list[Skipped]()
        if keys.kind == "pairs":
            room = self.longest - self.tokenizer.n_special(True)
            stream = pack_pairs(_examples(stream, skipped), self.tokenizer.spans, room, seed=keys.seed)
        elif keys.unit == "window":
            room = self.longest - self.tokenizer.n_special(False)
            stream = pack_sentences(_examples(stream, skipped), self.tokenizer.spans, room)
        made = set[str]()
        for item in stream:
            yield from _emptied(skipped)
            for found in [item] if isinstance(item, Skipped) else self._fitted(item):
                if isinstance(found, Prepared):
                    _check_name(found.example, made)
                yield found
        yield from _emptied(skipped)

    def _check_random(self) -> None:
        """Raise BadInput where random tokens have words, or would be cut: they would not be repeated any more."""
        length, source = self.recipe.corpus.length, self.recipe.words.source
        if source != "none":
            raise BadInput("drawing random tokens", f'words.source = "{source}"', '"none": random tokens are no words')
        whole = 2 * length + self.tokenizer.n_special(False)
        if whole > self.longest:
            raise BadInput(
                f"drawing sequences of {length} random tokens, each twice",
                f"{whole} tokens, special ones included",
                f"{self.longest} at most, which is what {self.recipe.model.name} takes or encode.max_length says",
                "Set corpus.length lower",
            )

    def _with_wanted_words(self, item: Example | Skipped) -> Example | Skipped:
        # A parser replaces the words; mentions and links move from the corpus's words to its own.
        if isinstance(item, Skipped) or self.recipe.words.source != "none":
            return item
        return dataclasses.replace(item, words=(), target_words=(), mentions=(), links=())

    def _joined(self, stream: Iterator[Example | Skipped]) -> Iterator[Example | Skipped]:
        for item in stream:
            if isinstance(item, Skipped):
                yield item
            else:
                (example,) = self.annotate([item]) if self.annotate else (item,)
                yield join_words(example)

    def _fitted(self, example: Example) -> Iterator[Prepared | Skipped]:
        source, target = self._encode(example)
        if not any(part is not None for part in source.parts):
            yield Skipped(example.name, "no token in its text", example.where)
        elif len(source) <= self.longest and (target is None or len(target) <= self.longest):
            yield Prepared(example, source, target)
        elif self.recipe.encode.long == "skip":
            length = max(len(source), len(target) if target else 0)
            yield Skipped(example.name, f"{length} tokens, more than {self.longest}", example.where)
        elif self.recipe.encode.long == "window" and example.second is None and example.target is None:
            for window in cut_windows(example, self.tokenizer.spans, self.longest - self.tokenizer.n_special(False)):
                yield Prepared(window, self._encode(window)[0], None, "window")
        else:
            room = self.longest - self.tokenizer.n_special(example.second is not None)
            shorter = truncate(example, self.tokenizer.spans, room, self._target_room(example, target))
            yield Prepared(shorter, *self._encode(shorter), cut="truncated")

    def _target_room(self, example: Example, target: Encoded | None) -> int | None:
        """Tokens of a target text beside its special ones; None where there is none."""
        if target is None or example.target is None:
            return None
        return self.longest - (len(target) - len(self.tokenizer.spans(example.target)))

    def _encode(self, example: Example) -> tuple[Encoded, Encoded | None]:
        part_ids = self.recipe.encode.part_ids
        if example.tokens:
            return self.tokenizer.encode_tokens(example.tokens, part_ids=part_ids), None
        source = self.tokenizer.encode(example.text, example.second, part_ids=part_ids)
        return source, None if example.target is None else self.tokenizer.encode_target(example.target)


def _check_name(example: Example, made: set[str]) -> None:
    """Raise BadInput where a window or a packed example got a name that another example has."""
    if "#" not in example.name and ".." not in example.name:
        return  # as the corpus gave it, which has seen to it that names differ
    if example.name in made:
        raise BadInput(
            f"reading {example.where}",
            f"the name {example.name!r} again: a text that was cut or packed has it too",
            "names that are unique over the corpus",
            "Rename the example: windows are named NAME#1, NAME#2, packed sentences FIRST..LAST",
        )
    made.add(example.name)


def _examples(stream: Iterator[Example | Skipped], skipped: list[Skipped]) -> Iterator[Example]:
    for item in stream:
        if isinstance(item, Skipped):
            skipped.append(item)
        else:
            yield item


def _emptied(skipped: list[Skipped]) -> Iterator[Skipped]:
    while skipped:
        yield skipped.pop(0)
