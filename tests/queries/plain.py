"""This file answers questions by loops over plain arrays, written from the papers' definitions and nothing of ours."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attnstore.store.store import Store
from tests.store.making import Made

Array = NDArray[np.float64]
Row = Mapping[str, Any]


@dataclass
class Plain:
    """One example: `maps` [head of all layers, query, key], its tokens and words in order, its links, its texts."""

    maps: Array
    tokens: Sequence[Row]
    words: Sequence[Row]
    links: Sequence[Row] = ()
    texts: Sequence[str] = ()
    _merged: dict[str, Array] = field(default_factory=dict)

    def pieces(self, word: int) -> list[int]:
        return [at for at, token in enumerate(self.tokens) if token["word"] == word]

    def word_map(self, pieces: str = "mean") -> Array:
        """[head, word, word]: columns of a word's pieces added, its rows averaged or the first taken; NaN without."""
        if pieces not in self._merged:
            n = len(self.words)
            merged = np.full((len(self.maps), n, n), np.nan)
            own = [self.pieces(word) for word in range(n)]
            for query in range(n):
                for key in range(n):
                    if own[query] and own[key]:
                        rows = own[query][:1] if pieces == "first" else own[query]
                        cells = self.maps[:, rows][:, :, own[key]]
                        merged[:, query, key] = cells.sum(axis=2).mean(axis=1)
            self._merged[pieces] = merged
        return self._merged[pieces]


def of_made(made: Iterable[Made], kind: str = "encoder") -> list[Plain]:
    """The examples that a test store was made from."""
    found = []
    for one in made:
        text = one.source
        tokens = [
            {"text": spelling, "special": special, "word": None if word < 0 else word}
            for spelling, special, word in zip(text.tokens, text.special, text.word, strict=True)
        ]
        maps = one.maps[kind].astype(np.float64)
        links = [{"link": number, **link} for number, link in enumerate(one.links)]
        texts = [one.columns.get("text", " ".join(word["form"] for word in text.words)), one.columns.get("second")]
        found.append(
            Plain(maps.reshape(-1, *maps.shape[2:]), tokens, text.words, links, [part for part in texts if part])
        )
    return found


def of_store(store: Store) -> Iterator[Plain]:
    """The examples of a store, from its Parquet files and its maps."""
    tables = {name: _rows(store.path, name) for name in ("tokens", "words", "links")}
    for row in sorted(_read(store.path, "examples"), key=lambda row: row["example"]):
        number = row["example"]
        maps = store.attention(number).to_numpy().astype(np.float64)
        tokens, words, links = (tables[name].get(number, []) for name in ("tokens", "words", "links"))
        texts = [part for part in (row["text"], row["second"]) if part]
        yield Plain(
            maps.reshape(-1, *maps.shape[2:]),
            sorted(tokens, key=lambda token: token["token"]),
            sorted(words, key=lambda word: word["word"]),
            sorted(links, key=lambda link: link["link"]),
            texts,
        )


def _rows(root: Path, name: str) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in _read(root, name):
        found.setdefault(row["example"], []).append(row)
    return found


def _read(root: Path, name: str) -> list[Row]:
    return [row for file in sorted(root.glob(f"segments/*/{name}.parquet")) for row in pq.read_table(file).to_pylist()]


def divergences(examples: Iterable[Plain], *, eps: float = 1e-3, sampled: int = 0) -> tuple[Array, int]:
    """[head, head] summed over rows and examples, and over how many rows (Clark et al. 2019, section 6)."""
    total, n_rows = np.zeros(()), 0
    for one in examples:
        n = one.maps.shape[1]
        part = n / sampled if sampled else 1.0
        rows = range(n) if not sampled or sampled >= n else [int((at + 0.5) * part) for at in range(sampled)]
        smoothed = eps / n + (1 - eps) * one.maps[:, list(rows)]
        apart = np.zeros((len(smoothed), len(smoothed)))
        for a, p in enumerate(smoothed):
            for b in range(a + 1, len(smoothed)):
                q = smoothed[b]
                middle = (p + q) / 2
                apart[a, b] = apart[b, a] = (p * np.log(p / middle) + q * np.log(q / middle)).sum() / 2
        total, n_rows = total + apart, n_rows + len(rows)
    return total, n_rows


NOUNS, VERBS = {"NN", "NNS", "NNP", "NNPS"}, {"VB", "VBD", "VBG", "VBN", "VBP", "VBZ"}
SUBJECTS = {
    "nsubj",
    "nsubjpass",
    "csubj",
    "csubjpass",
    "agent",
    "expl",
    "nsubj:pass",
    "csubj:pass",
    "nsubj:outer",
    "csubj:outer",
}
OBJECTS = {"dobj", "iobj", "dative", "attr", "oprd", "obj"}
NEGATIONS = (
    "neither", "nor", "not", "never", "none", "don't", "won't", "didn't", "hadn't", "haven't", "can't", "isn't",
    "wasn't", "shouldn't", "couldn't", "nothing", "nowhere",
)  # fmt: skip


def features_of(word: Row) -> set[str]:
    """The features of a word with tags of the Penn Treebank (Kovaleva et al. 2019, section 4.4)."""
    tag = word["xpos"]
    found = {"NOUN"} if tag in NOUNS else {"VERB"} if tag in VERBS else {"PRON"} if tag in {"PRP", "PRP$"} else set()
    found |= {"SUBJ"} if word["deprel"] in SUBJECTS or word["deprel"] == "obl:agent" else set()
    found |= {"OBJ"} if word["deprel"] in OBJECTS else set()
    return found | ({"NEG"} if word["form"].lower() in {*NEGATIONS, "n't"} else set())


def _special(one: Plain) -> dict[str, list[int]]:
    named = [token["special"] for token in one.tokens]
    return {name.upper(): [at for at, own in enumerate(named) if own == name] for name in ("cls", "sep")}


def featured(one: Plain) -> dict[str, list[int]]:
    """The tokens of each feature, by position."""
    found: dict[str, list[int]] = {name: tokens for name, tokens in _special(one).items() if tokens}
    for number, word in enumerate(one.words):
        for feature in features_of(word):
            found.setdefault(feature, []).extend(one.pieces(number))
    return {name: tokens for name, tokens in found.items() if tokens}


def featured_as_released(one: Plain) -> dict[str, list[int]]:
    """The same by spelling; negations anywhere in the text. A feature that is given without tokens scores 0."""
    spellings: dict[str, set[str]] = {name: set() for name in ("NOUN", "VERB", "PRON", "SUBJ", "OBJ")}
    for number, word in enumerate(one.words):
        for feature in features_of(word) - {"NEG"}:
            spellings[feature] |= {one.tokens[at]["text"] for at in one.pieces(number)}
    if inside := [negation for negation in NEGATIONS if any(negation in text for text in one.texts)]:
        spellings["NEG"] = {part for negation in inside for part in negation.replace("'", " ' ").split()}
    by_text = {
        name: [at for at, token in enumerate(one.tokens) if token["special"] is None and token["text"] in own]
        for name, own in spellings.items()
    }
    return _special(one) | by_text


def largest_received(one: Plain, tokens: Mapping[str, Sequence[int]]) -> dict[str, Array]:
    """[head] by feature: the largest column mean of its tokens, 0 where it has none."""
    columns = one.maps.mean(axis=1)
    zero = np.zeros(len(columns))
    return {name: columns[:, own].max(axis=1) if own else zero for name, own in tokens.items()}


def largest_of_cls(one: Plain, row: int = 0) -> dict[str, Array]:
    """[head] by feature: the largest weight that a row gives to a token of it."""
    return {name: one.maps[:, row, own].max(axis=1) for name, own in featured(one).items()}


def means(values: Iterable[Mapping[str, Array]]) -> dict[str, tuple[Array, int]]:
    """Mean [head] over the examples that have a value, and their number, by name."""
    found: dict[str, list[Array]] = {}
    for one in values:
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return {name: (np.mean(own, axis=0), len(own)) for name, own in found.items()}


def link_weights(one: Plain, link: Row, *, level: str = "word", pieces: str = "mean") -> tuple[Array, Array] | None:
    """[head] from source to target and back: the largest over all pairs of words or tokens; None without pairs."""
    source = [w for w in range(link["source_start_word"], link["source_end_word"]) if one.pieces(w)]
    target = [w for w in range(link["target_start_word"], link["target_end_word"]) if one.pieces(w)]
    maps = one.word_map(pieces)
    if level == "token":
        source, target = ([at for w in span for at in one.pieces(w)] for span in (source, target))
        maps = one.maps
    if not source or not target:
        return None
    return maps[:, source][:, :, target].max(axis=(1, 2)), maps[:, target][:, :, source].max(axis=(1, 2))


def distance(link: Row) -> int:
    """Between the nearest words of the two spans; 0 where they share one."""
    source = range(link["source_start_word"], link["source_end_word"])
    target = range(link["target_start_word"], link["target_end_word"])
    return min(abs(a - b) for a in source for b in target)
