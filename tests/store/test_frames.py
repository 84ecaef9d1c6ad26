"""Tests of the axes that are built from the stored tables."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import Damaged
from attnstore.format.parquet import TableWriter
from attnstore.reduce.axes import Axis
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, Made, make_store, random_examples


def _equal(found: Axis, expected: Axis) -> None:
    for field in fields(Axis):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name), err_msg=field.name)


def test_a_frame_is_the_one_that_ingest_had(store: Store, made: list[Made]) -> None:
    for example, one in enumerate(made):
        found, expected = store.engine.frames.frame(example // 3, "encoder", example), one.frame(ENCODER)
        assert found.is_self
        assert not found.causal
        _equal(found.queries, expected.queries)


def test_each_kind_has_the_sides_of_its_own(tmp_path: Path) -> None:
    made = random_examples(6, (5, 7, 4), KINDS)
    with open_store(make_store(tmp_path / "two.attn", made, kinds=KINDS, per_segment=2)) as store:
        for example, one in enumerate(made):
            for kind, shape in KINDS.items():
                found, expected = store.engine.frames.frame(example // 2, kind, example), one.frame(shape)
                assert (found.is_self, found.causal) == (expected.is_self, expected.causal)
                _equal(found.queries, expected.queries)
                _equal(found.keys, expected.keys)


def test_only_the_last_few_segments_are_held(made: list[Made], tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "many.attn", made, per_segment=1)) as store:
        for example in range(7):
            store.engine.frames.frame(example, "encoder", example)
        assert list(store.engine.frames._held) == [3, 4, 5, 6]


def test_an_example_without_tokens_is_damage(made: list[Made], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = TableWriter.append_rows

    def forgetful(self: TableWriter, rows: list[dict[str, object]]) -> None:
        append(self, [row for row in rows if self.schema.names[2] != "token" or row["example"] != 1])

    monkeypatch.setattr(TableWriter, "append_rows", forgetful)
    root = make_store(tmp_path / "less.attn", made[:2])
    with open_store(root) as store:
        assert store.engine.frames.frame(0, "encoder", 0).is_self
        with pytest.raises(Damaged, match="the source tokens of example 1"):
            store.engine.frames.frame(0, "encoder", 1)
        with pytest.raises(Damaged, match="segment 7"):
            store.engine.frames.frame(7, "encoder", 1)
