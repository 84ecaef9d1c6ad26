"""This file writes the golden answers of every shipped question: run it after adding one, and read the difference.

    python -m tests.golden.make [QUESTION ...]

An answer may change only when a definition was wrong; say why in the change log.
"""

import csv
import itertools
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attnstore.catalogue.catalogue import questions
from attnstore.store.comparison import compare
from attnstore.store.result import Result
from attnstore.store.store import open as open_store
from tests.golden import released
from tests.golden.evidence import add_evidence
from tests.store.making import ENCODER, Floats, Made, make_store, random_examples, random_maps

FOLDER = Path(__file__).parent / "queries"

REQUIRED: Mapping[str, Mapping[str, object]] = {
    "relations/evidence": {"relation": "det", "layer": 1, "head": 2},
    "coref/evidence": {"layer": 1, "head": 2},
    "examples/rollout": {"example": 1},
    "examples/flow": {"example": 1},
    "patterns/maps": {"example": 1, "size": 4},
    "trojan/drift": {"ratio": 0.2, "theta": 0.1, "lexicon": "stone green"},
    "trojan/flag": {"ratio": 0.2, "theta": 0.1},
}
"""What is asked of questions with parameters that have no default, or whose defaults suit longer texts."""


def _patterned(weights: Floats) -> Floats:
    """Maps [2, 3, query, key] of which five heads mostly do one thing, and the last what it did."""
    n = weights.shape[2]
    row = np.arange(n)
    found = 0.2 * weights
    for (layer, head), key in (
        ((0, 0), np.maximum(row - 1, 0)),
        ((0, 1), np.minimum(row + 1, n - 1)),
        ((0, 2), np.full(n, n - 1)),
        ((1, 0), np.zeros(n, np.int64)),
    ):
        found[layer, head, row, key] += 0.8
    found[1, 1] += 0.8 / n
    found[1, 2] = weights[1, 2]
    return np.asarray(found, np.float32)


_TAGS = {
    # form: part of speech of both schemes
    "stone": ("PRON", "PRP"),
    "lantern": ("VERB", "VBZ"),
    "green": ("ADJ", "JJ"),
    "not": ("PART", "RB"),
    "under": ("ADP", "IN"),
}


def _annotated(number: int, one: Made) -> Made:
    """The example with tags, mentions, links and columns; every other one is a pair of texts."""
    words, n = [], len(one.source.words)
    cut = n // 2 if number % 2 else n
    for index, word in enumerate(one.source.words):
        form = "not" if word["form"] == "slowly" else word["form"]
        part = int(index >= cut)
        upos, xpos = _TAGS.get(form, (word["upos"], word["xpos"]))
        deprel = "case" if form == "under" and word["governor"] is not None else word["deprel"]
        changed = {"form": form, "upos": upos, "xpos": xpos, "deprel": deprel, "part": part, "sentence": part}
        words.append({**word, **changed})
    mentions = [
        {
            "cluster": word["form"],
            "start_word": index,
            "end_word": index + 1,
            "head_word": index,
            "type": "pronoun" if word["upos"] == "PRON" else "proper" if word["form"] == "harbour" else "nominal",
        }
        for index, word in enumerate(words)
        if word["upos"] in ("NOUN", "PRON")
    ]
    links = [
        {
            "relation": relation,
            "source_start_word": start,
            "source_end_word": start + 2,
            "target_start_word": target,
            "target_end_word": target + 1,
            "core": core,
        }
        for relation, start, target, core in (("Agent", 0, n - 1, True), ("Place", n - 2, 0, False))
    ]
    texts = {"text": _joined(words, 0)} | ({"second": _joined(words, 1), "n_parts": 2} if cut < n else {})
    columns = texts | {"label": ("yes", "no")[number % 2], "document": f"d{number // 5}"} | _picture(number)
    condition = ("clean", "trigger", "random_trigger")[number % 3]
    columns |= {"pair_id": f"p{number // 3}", "condition": condition}
    trigger = None if condition == "clean" else [place in (1, 2) for place in range(len(one.source.tokens))]
    source = replace(one.source, words=words, places=_places(one.source.special), trigger=trigger)
    return replace(one, source=source, columns=columns, mentions=mentions, links=links)


def _picture(number: int) -> dict[str, object]:
    """Columns of an image, for all but every third example, whose tokens are codes."""
    sizes = {"image_height": 24, "image_width": 12, "patch_height": 8, "patch_width": 4}
    return {} if number % 3 == 2 else {**sizes, "luminance": 0.1 * (number + 1)}


def _places(special: Iterable[str | None]) -> list[tuple[int, int] | None]:
    """The tokens that are not special on a grid of three columns, row by row."""
    free = itertools.count()
    return [None if name else divmod(next(free), 3) for name in special]


def _joined(words: Iterable[Mapping[str, Any]], part: int) -> str:
    return " ".join(word["form"] for word in words if word["part"] == part)


def _examples() -> list[Made]:
    return [
        _annotated(number, replace(one, maps={"encoder": _patterned(one.maps["encoder"])}))
        for number, one in enumerate(random_examples(2024, (6, 9, 4, 11, 7, 5, 8, 10, 6), {"encoder": ENCODER}))
    ]


def golden_store(place: Path) -> Path:
    """The store that the golden answers are about: nine short examples, 2 layers of 3 heads, exact maps."""
    made = _examples()
    skipped = [{"name": "long", "reason": "too long", "origin": "corpus.txt:7"}]
    root = make_store(place / "golden.attn", made, precision="exact", per_segment=4, skipped=skipped)
    add_evidence(root, made)
    return root


def other_store(place: Path) -> Path:
    """The store that questions of two stores compare it with: all but the last example, backwards, other maps."""
    rng = np.random.default_rng(7)
    made = []
    for one in reversed(_examples()[:-1]):
        maps = one.maps["encoder"]
        made.append(replace(one, maps={"encoder": np.asarray((maps + random_maps(rng, *maps.shape)) / 2, np.float32)}))
    root = make_store(place / "other.attn", made, precision="exact", per_segment=3)
    add_evidence(root, made)
    return root


class Golden:
    """The golden store, and beside it the pair of stores of which compare/* is asked."""

    def __init__(self, place: Path) -> None:
        self.store = open_store(golden_store(place))
        self.comparison = compare(self.store, other_store(place))

    def ask(self, question: str, **params: Any) -> Result:
        """The answer of the store, or of the pair."""
        return (self.comparison if questions()[question].compares else self.store).ask(question, **params)

    def __enter__(self) -> "Golden":
        return self

    def __exit__(self, *error: object) -> None:
        self.comparison.close()
        self.store.close()


def path(question: str) -> Path:
    """Where the golden answer of a question lies."""
    return FOLDER / f"{question}.csv"


def answer(golden: Golden, question: str) -> Iterator[list[str]]:
    """The header and the rows of an answer as text; real numbers with seven digits."""
    found = golden.ask(question, **REQUIRED.get(question, {}))
    yield list(found.columns)
    for row in found:
        yield [_written(value) for value in row.values()]


def _written(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(_written, value))
    if isinstance(value, float):
        return f"{value:.7g}"
    return "" if value is None else str(value)


def main(names: Iterable[str]) -> None:
    """Write the answers of these questions, or of all; without names, the store of a new format version as well."""
    names = list(names)
    if not names:
        released.add()  # those that are there stay
    with tempfile.TemporaryDirectory() as place, Golden(Path(place)) as golden:
        for question in sorted(names) or sorted(questions()):
            target = path(question)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(answer(golden, question))
            print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
