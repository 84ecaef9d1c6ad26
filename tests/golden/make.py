"""This file writes the golden answers of every shipped question: run it after adding one, and read the difference.

    python -m tests.golden.make [QUESTION ...]

An answer may change only when a definition was wrong; say why in the change log.
"""

import csv
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from attnstore.catalogue.catalogue import questions
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, Floats, make_store, random_examples

FOLDER = Path(__file__).parent / "queries"

REQUIRED: Mapping[str, Mapping[str, object]] = {
    "relations/evidence": {"relation": "det", "layer": 1, "head": 2},
}
"""What is asked of questions with parameters that have no default."""


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


def golden_store(place: Path) -> Path:
    """The store that the golden answers are about: nine short examples, 2 layers of 3 heads, exact maps."""
    made = [
        replace(one, maps={"encoder": _patterned(one.maps["encoder"])})
        for one in random_examples(2024, (6, 9, 4, 11, 7, 5, 8, 10, 6), {"encoder": ENCODER})
    ]
    skipped = [{"name": "long", "reason": "too long", "origin": "corpus.txt:7"}]
    return make_store(place / "golden.attn", made, precision="exact", per_segment=4, skipped=skipped)


def path(question: str) -> Path:
    """Where the golden answer of a question lies."""
    return FOLDER / f"{question}.csv"


def answer(store: Store, question: str) -> Iterator[list[str]]:
    """The header and the rows of an answer as text; real numbers with seven digits."""
    found = store.ask(question, **REQUIRED.get(question, {}))
    yield list(found.columns)
    for row in found:
        yield [_written(value) for value in row.values()]


def _written(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.7g}"
    return "" if value is None else str(value)


def main(names: Iterable[str]) -> None:
    """Write the answers of these questions, or of all."""
    with tempfile.TemporaryDirectory() as place, open_store(golden_store(Path(place))) as store:
        for question in sorted(names) or sorted(questions()):
            target = path(question)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(answer(store, question))
            print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
