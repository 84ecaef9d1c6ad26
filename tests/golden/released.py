"""This file makes the store that stands for a format version, once: later code must read it as it lies there.

    python -m tests.golden.released

A folder of `stores/` is a version. One that is there is never written again, whatever the code has become.
"""

import csv
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.format.version import FORMAT
from attnstore.job.recipe import Recipe
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.conftest import write_arrays

FOLDER = Path(__file__).parent / "stores"

QUESTIONS: Mapping[str, Mapping[str, object]] = {
    "heads/entropy": {},
    "heads/positions": {},
    "relations/best": {"min_count": 1},
    "audit/counts": {},
    "audit/rows": {},
}
"""What is asked of the store: of facts in segments, of those in an addition, of annotations, and of the maps."""

_SENTENCES = ("nobody answered .", "the ferry that we awaited came at noon .")


def answer(store: Store, question: str) -> Iterator[list[str]]:
    """The header and the rows of an answer as text; real numbers with six digits."""
    found = store.ask(question, **QUESTIONS[question])
    yield list(found.columns)
    for row in found:
        yield [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row.values()]


def kept_answer(version: Path, question: str) -> list[list[str]]:
    """The answer that the code of that time gave."""
    with (version / "answers" / f"{question.replace('/', '-')}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def kept_maps(version: Path) -> dict[str, Any]:
    """The maps that the code of that time read, by the name of the example, [layer, head, query, key]."""
    with np.load(version / "maps.npz") as file:
        return {name: file[name] for name in file.files}


def add(folder: Path = FOLDER) -> bool:
    """Make the folder of the current format version; False where it is there, which leaves it as it is."""
    version = folder / FORMAT
    if version.exists():
        return False
    with tempfile.TemporaryDirectory() as place:
        staging = Path(place) / FORMAT
        (staging / "answers").mkdir(parents=True)
        _make_store(Path(place), staging / "store")
        with open_store(staging / "store") as store:
            for question in QUESTIONS:
                with (staging / "answers" / f"{question.replace('/', '-')}.csv").open("w", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(answer(store, question))
            examples = store.sql("select example, name from examples")
            maps = {str(row["name"]): store.attention(int(row["example"])).to_numpy() for row in examples}
        np.savez_compressed(staging / "maps.npz", **maps)
        shutil.copytree(staging, version)
    return True


def _make_store(place: Path, root: Path) -> None:
    """Two sentences in two segments, an addition, two snapshots and a tag."""
    corpus = write_arrays(place / "corpus", _SENTENCES, seed=17)
    value = {"title": f"format {FORMAT}", "corpus": {"kind": "arrays", "path": corpus.name, "licence": "CC0 1.0"}}
    # The recipe is kept with the path as it is given here: that of a folder of one machine has no place in it.
    before = Path.cwd()
    os.chdir(corpus.parent)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 12)
            recipe = Recipe.build({**value, "model": {"name": "arrays"}}, {"words.source": "gold"}, folder=Path("."))
            ingest(recipe, root).close()
    finally:
        os.chdir(before)
    (root / "tags").mkdir()
    (root / "tags/ingested.json").write_text(json.dumps({"snapshot": len(list((root / "snapshots").iterdir()))}) + "\n")
    refresh(root, "head_facts", {"eps": "0.01"})


if __name__ == "__main__":
    print(FOLDER / FORMAT, "made" if add() else "there already: a version is made once")
