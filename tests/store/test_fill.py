"""Tests that every fact table is filled from the maps alike, however examples are cut into blocks and heads kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attnstore.errors import BadInput, BadQuestion, NotStored
from attnstore.format.fact_tables import COMPUTED
from attnstore.format.manifest import Kept
from attnstore.format.tables import TABLES
from attnstore.store import fill
from attnstore.store.facts import FACTS
from attnstore.store.fill import batches, compute
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.golden.make import golden_store
from tests.store.making import KINDS, Made, make_store, random_examples

OF_ONE = {"rollout_facts": {"example": 2}, "flow_through": {"example": 2}}


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden store, which has every annotation: nine examples in three segments."""
    return golden_store(tmp_path_factory.mktemp("golden"))


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: [str(value) for value in list(row.values())[:6]])


def same(one: pa.Table, two: pa.Table) -> None:
    assert one.schema == two.schema
    assert len(one) == len(two)
    for left, right in zip(rows(one), rows(two), strict=True):
        for name, value in left.items():
            if isinstance(value, list | float) and value is not None and right[name] is not None:
                a, b = (np.array(item, np.float64) for item in (value, right[name]))  # null becomes NaN
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7, err_msg=name)
            else:
                assert value == right[name], name


@pytest.mark.parametrize("table", FACTS)
def test_small_blocks_give_the_rows_of_one_block(table: str, annotated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"property": "governor"} if "property" in FACTS[table].defaults else OF_ONE.get(table, {})
    with open_store(annotated) as store:
        whole = compute(store.engine, table, params, "testing")
        assert whole.schema == (COMPUTED.get(table) or TABLES[table])
        assert len(whole) > 0
        monkeypatch.setattr(fill, "BLOCK_CELLS", 1)
        monkeypatch.setattr(fill, "READ_CELLS", 1)
        monkeypatch.setattr("attnstore.store.rectangles.READ_CELLS", 1)
        pieces = list(batches(store.engine, table, params, "testing"))
        assert len(pieces) == (1 if table in OF_ONE else 9)
        same(whole, pa.concat_tables(pieces))


@pytest.mark.parametrize("table", FACTS)
def test_a_table_never_holds_a_nan(table: str, annotated: Path) -> None:
    params = {"property": "governor"} if "property" in FACTS[table].defaults else OF_ONE.get(table, {})
    with open_store(annotated) as store:
        found = compute(store.engine, table, params, "testing")
    for column in found.columns:
        flat = column.combine_chunks()
        while pa.types.is_list(flat.type):
            flat = flat.flatten()
        if pa.types.is_floating(flat.type):
            assert not np.isnan(np.array([value for value in flat.to_pylist() if value is not None], np.float64)).any()


@pytest.mark.parametrize("table", [name for name, fact in FACTS.items() if name not in OF_ONE])
def test_the_rows_of_some_examples_are_those_of_all(table: str, annotated: Path) -> None:
    params = {"property": "governor"} if "property" in FACTS[table].defaults else {}
    with open_store(annotated) as store:
        whole = compute(store.engine, table, params, "testing")
        some = compute(store.engine, table, params, "testing", store.engine.places.only(np.array([1, 6])))
        kept = [value in (1, 6) for value in whole["example"].to_pylist()]
        same(some, whole.filter(pa.array(kept)))


@pytest.mark.parametrize(("sample", "expected"), [(0, range(9)), (3, [0, 4, 8]), (1, [0]), (50, range(9))])
def test_a_sample_is_spread_evenly(sample: int, expected: list[int], annotated: Path) -> None:
    with open_store(annotated) as store:
        found = compute(store.engine, "tree_facts", {"sample": sample}, "testing")
    assert sorted(set(found["example"].to_pylist())) == list(expected)


@pytest.mark.parametrize("kind", list(KINDS))
def test_kinds_that_a_table_takes_are_in_it(kind: str, tmp_path: Path) -> None:
    made = random_examples(5, (5, 8, 6), KINDS)
    with open_store(make_store(tmp_path / "k.attn", made, kinds=KINDS, precision="exact")) as store:
        for table in ("transfer_facts", "received_facts", "resampled_facts", "offset_facts", "head_distances"):
            there = kind in compute(store.engine, table, {}, "testing")["kind"].to_pylist()
            assert there == (kind != "cross" or FACTS[table].cross), table
        if kind == "cross":
            found = compute(store.engine, "received_facts", {}, "testing").filter(pa.compute.field("kind") == "cross")
            per_example = dict.fromkeys(range(3), 0)
            for row in found.to_pylist():
                per_example[row["example"]] += 1
            assert list(per_example.values()) == [len(item.source.tokens) for item in made]  # where keys are


def test_kept_heads_fill_tables_by_head_and_no_others(made: list[Made], tmp_path: Path) -> None:
    kept = Kept("all", (1,), (0, 2), None)
    with open_store(make_store(tmp_path / "part.attn", made, precision="exact", kept=kept)) as store:
        found = compute(store.engine, "offset_facts", {}, "testing")
        assert {(row["layer"], row["head"]) for row in found.to_pylist()} == {(1, 0), (1, 2)}
        for table in ("received_facts", "head_distances"):
            with pytest.raises(NotStored, match=r"layers \[1\] and heads \[0, 2\] only"):
                compute(store.engine, table, {}, "testing")


def test_a_value_that_a_parameter_may_not_have_is_refused(store: Store) -> None:
    for table, params in (
        ("flow_facts", {"classes": "colour"}),
        ("mention_facts", {"candidates": "all"}),
        ("pair_facts", {"pieces": "last"}),
        ("offset_facts", {"reach": -1}),
        ("resampled_facts", {"size": 0}),
    ):
        with pytest.raises((BadInput, BadQuestion)):
            compute(store.engine, table, params, "testing")
