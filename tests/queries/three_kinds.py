"""This file makes a store of three kinds of maps, and plain NumPy answers of it, for the tests of questions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.store.making import KINDS, Made, Text, random_examples

Floats = NDArray[np.float64]

# The map X of four tokens [CLS] a b [SEP].
X = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])

CLASSES: Mapping[str, Any] = {
    "special": lambda name, word, punct: "punct" if punct else "other",
    "upos": lambda name, word, punct: "none" if word is None else word["upos"],
    "part": lambda name, word, punct: "part_b" if word is not None and word["part"] else "part_a",
}


def _halved(made: Made) -> Made:
    """The example in two parts and two sentences, without arcs between them."""
    words = [dict(word) for word in made.source.words]
    for index, word in enumerate(words):
        part = word["part"] = word["sentence"] = int(index >= len(words) // 2)
        first = part * (len(words) // 2)
        # One root each; every other word hangs on the first or on the one before it.
        word["governor"] = None if index == first else first if index % 2 else index - 1
        word["deprel"] = "root" if index == first else "punct" if index % 3 == 0 else "obj"
    return replace(made, source=replace(made.source, words=words))


def examples() -> list[Made]:
    """Four pairs of texts; the sources have two sentences each."""
    return [_halved(item) for item in random_examples(31, (8, 5, 11, 6), KINDS)]


def side(item: Made, kind: str, axis: str = "queries") -> Text:
    found = item.source if getattr(KINDS[kind], axis) == "source" else item.target
    assert found is not None
    return found


def rows_of(item: Made, kind: str) -> Floats:
    """Maps [layer and head, query, key]."""
    return item.maps[kind].reshape(-1, *item.maps[kind].shape[2:]).astype(np.float64)


def averaged(sums: list[Floats], counts: list[float], mode: str) -> Floats:
    """The mean over examples of sum / count, or the sum of all over the count of all."""
    if mode == "macro":
        return np.asarray(np.mean([own / n for own, n in zip(sums, counts, strict=True)], axis=0))
    return np.asarray(np.sum(sums, axis=0) / np.sum(counts))


KIND = pytest.mark.parametrize("kind", ["encoder", "decoder"])
MODE = pytest.mark.parametrize("mode", ["macro", "micro"])
