"""This file makes the smallest corpus whose store has several segments, and reads back what a store of it holds."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

import attnstore.job.plan
from attnstore.job.recipe import Recipe
from attnstore.store.contents import read_contents
from attnstore.store.parquet_files import ParquetFiles
from tests.conftest import arrays_recipe, write_arrays

SEGMENT_TOKENS = 8
"""Tokens of a segment: each sentence below is one."""

SENTENCES = ("rain fell again", "she gave him the map", "he looked up")


def recipe_of(corpus: Path) -> Recipe:
    """The recipe of that corpus, cut into a segment for each sentence."""
    attnstore.job.plan.SEGMENT_TOKENS = SEGMENT_TOKENS
    return arrays_recipe(corpus, keep__facts="none")


def write_corpus(folder: Path) -> Path:
    """Three sentences with maps of one layer and two heads."""
    return write_arrays(folder, SENTENCES, layers=1, heads=2)


@dataclass(frozen=True)
class Held:
    """What can be read: by example its label, words and tokens, and of each segment the hash of its manifest."""

    rows: dict[str, tuple[str | None, int, int]]
    segments: dict[str, str]


def held(store: Path, snapshot: int | None = None, tag: str | None = None) -> Held:
    """What readers find in a store: every listed file is there, and the tables are those in force."""
    contents = read_contents(store, snapshot=snapshot, tag=tag)
    files = ParquetFiles(contents)
    files.check(["examples"])
    rows = {}
    for path in files.paths("examples"):
        for row in pq.read_table(path, columns=["name", "label", "n_words", "n_tokens"]).to_pylist():
            rows[row["name"]] = (row["label"], row["n_words"], row["n_tokens"])
    return Held(rows, {one.id: one.sha256 for one in contents.snapshot.segments})
