"""This file makes the sources of the tests of derived stores, and compares the answers of two stores."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.format.commit import describe
from attnstore.format.parquet import TableWriter
from attnstore.format.tables import TABLES
from attnstore.job import plan as plan_module
from attnstore.job.addition import opened, publish_addition
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe, write_arrays

QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("heads/entropy", {}),
    ("heads/entropy", {"eps": 0.01}),
    ("heads/offsets", {}),
    ("relations/accuracy", {}),
    ("induction/scores", {}),
    ("audit/misaligned", {}),
)
"""Answered from stored facts, from others that are computed from the maps, and from the texts' tables alone."""

MORE: tuple[tuple[str, dict[str, Any]], ...] = (
    *QUESTIONS,
    ("heads/confidence", {}),
    ("heads/special", {}),
    ("heads/distance", {}),
    ("heads/transfer", {}),
    ("heads/flow", {"classes": "special"}),
    ("relations/best", {}),
    ("relations/baselines", {}),
    ("relations/trees", {}),
    ("patterns/features", {}),
    ("pairs/alignment", {}),
    ("clusters/distances", {}),
)

Make = Callable[..., Path]


def maker(folder: Path) -> Make:
    """Makes stores of several segments in a folder; keyword arguments replace keys of the recipe."""

    def make(name: str, sentences: Sequence[str] = SENTENCES, *, seed: int = 0, tokens: int = 20, **keys: Any) -> Path:
        corpus = write_arrays(folder / f"{name}-corpus", sentences, seed=seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plan_module, "SEGMENT_TOKENS", tokens)
            ingest(arrays_recipe(corpus, **keys), folder / name).close()
        return folder / name

    return make


def answers(path: Path, where: str | None = None, questions: Sequence[Any] = QUESTIONS) -> dict[str, pa.Table]:
    """What a store says to these questions."""
    with attnstore.open(path) as store:
        return {f"{name} {params}": store.ask(name, where=where, **params).to_arrow() for name, params in questions}


def same(one: dict[str, pa.Table], other: dict[str, pa.Table]) -> None:
    """Assert that the answers are equal: numbers to the last bits of a sum, everything else as it is."""
    assert one.keys() == other.keys()
    for name, table in one.items():
        there = other[name]
        assert (table.schema, table.num_rows) == (there.schema, there.num_rows), name
        for column in table.schema.names:
            mine, yours = table[column].to_pylist(), there[column].to_pylist()
            if pa.types.is_floating(table.schema.field(column).type):
                np.testing.assert_allclose(
                    np.array(mine, float), np.array(yours, float), rtol=1e-12, atol=1e-15, err_msg=f"{name} {column}"
                )
            else:
                assert mine == yours, (name, column)


def with_token_ids(path: Path) -> Path:
    """Give the tokens of a store numbers of a vocabulary, in the order of the alphabet, as an annotation would."""
    with opened(path, "giving numbers") as store:
        tokens = store.sql("select * from stored.tokens order by example, side, token").to_arrow()
        number = {text: 100 + rank for rank, text in enumerate(sorted(set(tokens["text"].to_pylist())))}
        ids = pa.array([number[text] for text in tokens["text"].to_pylist()], pa.int32())
        new = tokens.set_column(tokens.schema.get_field_index("token_id"), "token_id", ids)

        def fill(writers: dict[str, TableWriter]) -> None:
            for batch in new.cast(TABLES["tokens"]).to_batches():
                writers["tokens"].append(batch)

        publish_addition(store, "tokens", ["tokens"], {}, "giving numbers", fill)
    return path


def maps_of(path: Path) -> list[bytes]:
    """The weights of every example as the store gives them, byte for byte."""
    with attnstore.open(path) as store:
        numbers = store.sql("select example from examples order by example").to_arrow()["example"].to_pylist()
        return [np.asarray(store.attention(number).weights).tobytes() for number in numbers]


def tree(path: Path) -> dict[str, str]:
    """The sha256 of every file below a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): describe(file, file.name).sha256 for file in files}


def column(path: Path, table: str, name: str) -> list[Any]:
    """A column of a table over all segments, as the files have it."""
    parts = sorted(path.glob(f"segments/*/{table}.parquet"))
    return [value for part in parts for value in pq.read_table(part, columns=[name])[name].to_pylist()]
