"""Tests of the virtual tables: whatever SQL asks of them, NumPy says the same."""

import importlib.util
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attnstore.errors import Damaged, NotStored
from attnstore.format.manifest import Kept, Kind
from attnstore.format.shards import Shards
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.forging import repin
from tests.store.making import ENCODER, KINDS, Made, Text, largest, make_store, random_examples, random_maps, stored

Columns = dict[str, NDArray[Any]]
ORDER = "order by example, kind, layer, head, query, key"


def rows(made: Sequence[Made], precision: str = "standard", kept: Kept | None = None) -> Columns:
    """Every row that `attention` should have, as columns, in the order of its keys."""
    found: list[tuple[Any, ...]] = []
    for example, one in enumerate(made):
        for kind, maps in sorted(one.maps.items()):
            weights = stored(maps, precision)
            for layer, head in np.ndindex(weights.shape[:2]):
                if kept and (layer not in (kept.layers or [layer]) or head not in (kept.heads or [head])):
                    continue
                cells = np.ndindex(weights.shape[2:])
                found += [(example, kind, layer, head, q, k, weights[layer, head, q, k]) for q, k in cells]
    names = ("example", "kind", "layer", "head", "query", "key", "weight")
    return {name: np.array(column) for name, column in zip(names, zip(*found, strict=True), strict=True)}


def same(store: Store, expected: Columns, text: str, keep: NDArray[np.bool_], names: Sequence[str]) -> None:
    """Assert that `select names from attention where text` gives the rows `keep` of `expected`."""
    found = store.sql(f"select {', '.join(names)} from attention where {text} {ORDER}").to_numpy()
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name][keep], err_msg=f"{text}: {name}")


@pytest.fixture(scope="module")
def expected(made: list[Made]) -> Columns:
    return rows(made)


def both(*conditions: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(np.logical_and.reduce(conditions))


FILTERS: list[tuple[str, Callable[[Columns], NDArray[np.bool_]]]] = [
    ("true", lambda c: c["layer"] >= 0),
    ("layer = 1 and head = 2", lambda c: both(c["layer"] == 1, c["head"] == 2)),
    ("example = 3", lambda c: c["example"] == 3),
    ("example = 99", lambda c: c["example"] == 99),
    ("example in (0, 5) and head in (0, 2)", lambda c: both(np.isin(c["example"], [0, 5]), c["head"] != 1)),
    ("example not in (0, 5)", lambda c: ~np.isin(c["example"], [0, 5])),
    ("example between 2 and 4 and layer < 1", lambda c: both(np.isin(c["example"], [2, 3, 4]), c["layer"] < 1)),
    ("kind = 'encoder' and query = key", lambda c: c["query"] == c["key"]),
    ("kind <> 'encoder'", lambda c: c["layer"] < 0),
    ("kind like 'enc%' and key = query + 1", lambda c: c["key"] == c["query"] + 1),
    ("weight > 0.5", lambda c: c["weight"] > 0.5),
    ("weight > 0.25 and example = 4", lambda c: both(c["weight"] > 0.25, c["example"] == 4)),
    ("weight between 0.1 and 0.2 and layer = 0", lambda c: both(abs(c["weight"] - 0.15) <= 0.05, c["layer"] == 0)),
    ("(layer = 0 and head = 1) or example = 6", lambda c: both(c["layer"] == 0, c["head"] == 1) | (c["example"] == 6)),
    (
        "(layer = 0 and query < 2) or (layer = 1 and query > 5)",
        lambda c: both(c["layer"] == 0, c["query"] < 2) | both(c["layer"] == 1, c["query"] > 5),
    ),
    ("not (layer = 0 or head = 0)", lambda c: both(c["layer"] == 1, c["head"] > 0)),
    ("example + 1 = 4", lambda c: c["example"] == 3),
    ("layer = 1::bigint and head = 0.0", lambda c: both(c["layer"] == 1, c["head"] == 0)),
    ("query is null", lambda c: c["layer"] < 0),
    ("example % 2 = 1 and query = 0", lambda c: both(c["example"] % 2 == 1, c["query"] == 0)),
    ("key in (select 2)", lambda c: c["key"] == 2),
]


@pytest.mark.parametrize(("text", "keep"), FILTERS, ids=[text for text, _ in FILTERS])
def test_sql_and_numpy_agree_on_every_filter(
    store: Store, expected: Columns, text: str, keep: Callable[[Columns], NDArray[np.bool_]]
) -> None:
    same(store, expected, text, keep(expected), ["example", "kind", "layer", "head", "query", "key", "weight"])


@pytest.mark.parametrize("names", [["weight"], ["example"], ["kind"], ["key", "head"], ["query", "layer"]])
@pytest.mark.parametrize("text", ["layer = 1", "head = 0 and query < 3", "weight > 0.3"])
def test_a_part_of_the_columns_is_filtered_by_columns_that_are_not_selected(
    store: Store, expected: Columns, names: list[str], text: str
) -> None:
    keep = {
        "layer = 1": expected["layer"] == 1,
        "head = 0 and query < 3": (expected["head"] == 0) & (expected["query"] < 3),
        "weight > 0.3": expected["weight"] > 0.3,
    }[text]
    same(store, expected, text, keep, names)


def test_counts_groups_and_joins_agree_with_numpy(store: Store, expected: Columns) -> None:
    assert store.sql("select count(*) as n from attention").to_numpy()["n"].tolist() == [len(expected["weight"])]
    found = store.sql(
        "select layer, head, sum(weight::double) as w from attention group by all order by all"
    ).to_numpy()
    for layer, head, total in zip(found["layer"], found["head"], found["w"], strict=True):
        own = (expected["layer"] == layer) & (expected["head"] == head)
        np.testing.assert_allclose(total, expected["weight"][own].sum(dtype=np.float64), rtol=1e-12)
    joined = store.sql(
        "select count(*) as n, sum(weight::double) as w from attention join (values (2, 1, 0)) v(e, l, h)"
        " on example = e and layer = l and head = h"
    ).to_numpy()
    own = (expected["example"] == 2) & (expected["layer"] == 1) & (expected["head"] == 0)
    assert joined["n"].tolist() == [own.sum()]
    np.testing.assert_allclose(joined["w"], expected["weight"][own].sum(dtype=np.float64))
    twice = store.sql(
        "select count(*) as n from attention a join attention b using (example, kind, layer, head, query)"
        " where a.layer = 0 and a.head = 1 and a.key = b.key + 1 and a.example = 4"
    )
    n = int(((expected["example"] == 4) & (expected["layer"] == 0) & (expected["head"] == 1)).sum())
    assert [row["n"] for row in twice] == [n - int(np.sqrt(n))]


def test_parameters_reach_the_filter(store: Store, expected: Columns) -> None:
    found = store.sql("select weight from attention where example = $e and layer = $l order by all", e=2, l=1)
    own = (expected["example"] == 2) & (expected["layer"] == 1)
    np.testing.assert_array_equal(found.to_numpy()["weight"], np.sort(expected["weight"][own]))


def test_types_are_those_of_the_contract(store: Store) -> None:
    found = store.sql("describe attention").to_arrow().to_pydict()
    assert found["column_name"] == ["example", "kind", "layer", "head", "query", "key", "weight"]
    assert found["column_type"] == ["INTEGER", "VARCHAR", "SMALLINT", "SMALLINT", "INTEGER", "INTEGER", "FLOAT"]
    assert store.tables["attention"] == dict(zip(found["column_name"], found["column_type"], strict=True))


def test_one_head_of_one_example_reads_no_more_than_its_cells(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[slice, ...]] = []
    cells = store.engine.cells
    original = cells._read

    def watched(segment: int, name: str, *where: Any) -> NDArray[Any]:
        read.append(where[:3])
        return original(segment, name, *where)

    monkeypatch.setattr(cells, "_read", watched)
    (row,) = store.sql("select count(weight) as n from attention where example = 4 and layer = 1 and head = 2")
    (where,) = read
    assert where[:2] == (slice(1, 2), slice(2, 3))
    assert where[2].stop - where[2].start == row["n"] == 81  # 7 words: 9 tokens
    read.clear()
    store.sql("select count(*) from attention where layer = 1")
    assert read == []  # a count of cells needs no weight


@pytest.fixture(scope="module")
def two_sided() -> list[Made]:
    return random_examples(5, (6, 4, 9, 5), KINDS)


@pytest.mark.parametrize("precision", ["standard", "exact", "compact"])
def test_kinds_and_precisions_agree_with_numpy(two_sided: list[Made], tmp_path: Path, precision: str) -> None:
    root = make_store(tmp_path / "two.attn", two_sided, kinds=KINDS, precision=precision, per_segment=2)
    expected = rows(two_sided, precision)
    with open_store(root) as store:
        for text, keep in (
            ("true", expected["layer"] >= 0),
            ("kind = 'cross' and layer = 2", (expected["kind"] == "cross") & (expected["layer"] == 2)),
            (
                "kind in ('decoder', 'cross') and example = 1",
                (expected["kind"] != "encoder") & (expected["example"] == 1),
            ),
            (
                "kind = 'decoder' and key > query",
                (expected["kind"] == "decoder") & (expected["key"] > expected["query"]),
            ),
        ):
            same(store, expected, text, keep, ["example", "kind", "layer", "head", "query", "key", "weight"])


def test_layers_and_heads_that_were_not_kept_have_no_rows(made: list[Made], tmp_path: Path) -> None:
    kept = Kept("all", (1,), (0, 2), None)
    root = make_store(tmp_path / "part.attn", made, kept=kept)
    expected = rows(made, kept=kept)
    with open_store(root) as store:
        same(store, expected, "true", expected["layer"] >= 0, ["layer", "head", "weight"])
        assert [row["n"] for row in store.sql("select count(*) as n from attention where layer = 0")] == [0]
        assert store.sql("select distinct layer, head from word_attention order by all").to_arrow().to_pylist() == [
            {"layer": 1, "head": 0},
            {"layer": 1, "head": 2},
        ]


def test_a_store_of_facts_only_has_an_empty_table(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "facts.attn", made, kept=Kept("none", None, None, None))
    with open_store(root) as store:
        for table in ("attention", "word_attention"):
            assert len(store.sql(f"from {table}")) == 0
            assert len(store.sql(f"from {table} where layer = 1 and example = 2")) == 0


@pytest.mark.parametrize("topk", [1, 4, 20])
def test_a_store_of_largest_weights_has_exactly_those(made: list[Made], tmp_path: Path, topk: int) -> None:
    root = make_store(tmp_path / "topk.attn", made, kept=Kept("topk", None, None, topk))
    found = []
    for example, one in enumerate(made):
        maps = one.maps["encoder"]
        for layer in range(len(maps)):
            key, weight, _ = largest(maps[layer], topk)
            weight = stored(weight)
            for head, query, entry in zip(*np.nonzero(key != 2**32 - 1), strict=True):
                where = (int(head), int(query), int(entry))
                found.append((example, layer, where[0], where[1], int(key[where]), float(weight[where])))
    with open_store(root) as store:
        answer = store.sql("select example, layer, head, query, key, weight from attention order by all")
        assert [tuple(row.values()) for row in answer] == sorted(found)
        one_head = [row for row in sorted(found) if row[0] == 3 and row[1:3] == (1, 0)]
        answer = store.sql(
            "select * exclude (kind) from attention where example = 3 and layer = 1 and head = 0 order by all"
        )
        assert [tuple(row.values()) for row in answer] == one_head
        assert [row["n"] for row in store.sql("select count(*) as n from attention")] == [len(found)]
        with pytest.raises(NotStored, match="largest weights of a row"):
            store.sql("select sum(weight) from word_attention")


def test_a_map_larger_than_a_block_is_read_in_parts(tmp_path: Path) -> None:
    n = 700  # 490,000 cells: two blocks
    text = Text([str(i) for i in range(n)], [None] * n, [-1] * n)
    kind = Kind(1, 2, 2, "source", "source", False)
    one = Made("long", text, {"encoder": random_maps(np.random.default_rng(0), 1, 2, n, n)})
    root = make_store(tmp_path / "long.attn", [one], kinds={"encoder": kind}, precision="exact", tables=())
    with open_store(root) as store:
        found = store.sql("select query, key, weight from attention where head = 1 order by query, key").to_numpy()
        np.testing.assert_array_equal(found["weight"].reshape(n, n), one.maps["encoder"][0, 1])
        np.testing.assert_array_equal(found["query"].reshape(n, n), np.indices((n, n))[0])
        np.testing.assert_array_equal(found["key"].reshape(n, n), np.indices((n, n))[1])


@pytest.fixture(params=["shards", "zarrs", "zarr"])
def pipeline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways to read an array: ours, and for arrays laid out otherwise zarrs, where it is installed, or zarr."""
    if request.param != "shards":
        monkeypatch.setattr(Shards, "of", lambda *_: None)
    if request.param == "zarrs":
        pytest.importorskip("zarrs")
    else:
        original = importlib.util.find_spec
        hidden = lambda name, *rest: None if name == "zarrs" else original(name, *rest)  # noqa: E731
        monkeypatch.setattr(importlib.util, "find_spec", hidden)
    return str(request.param)


def test_all_pipelines_read_the_same(folder: Path, made: list[Made], expected: Columns, pipeline: str) -> None:
    with open_store(folder) as store:
        same(store, expected, "layer = 1", expected["layer"] == 1, ["weight"])
        ((array, shards, _), *_) = store.engine.cells._arrays.values()
        assert isinstance(shards, Shards) == (pipeline == "shards")
        assert ("Zarrs" in type(array._async_array.codec_pipeline).__name__) == (pipeline == "zarrs")


def test_a_flipped_bit_in_a_map_never_gives_a_number(
    folder: Path, tmp_path: Path, made: list[Made], pipeline: str
) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "flip.attn"))
    shard = root / "segments/000000/maps.zarr/encoder/c/1/0/0"
    sound = shard.read_bytes()
    rng = np.random.default_rng(2)
    caught = 0
    for place in rng.integers(0, len(sound), 12).tolist():
        spoilt = bytearray(sound)
        spoilt[place] ^= 1 << int(rng.integers(8))
        shard.write_bytes(spoilt)
        with open_store(root) as store:
            with pytest.raises(Damaged, match=r"000000/maps\.zarr/encoder"):
                store.sql("select sum(weight) from attention where layer = 1")
            errors = []
            for example in range(3):
                try:
                    found = store.attention(example, layer=1).weights
                except Damaged as error:
                    errors.append(str(error))
                else:  # a byte that these heads do not need
                    np.testing.assert_array_equal(found, stored(made[example].maps["encoder"])[1])
            assert errors
            assert all("encoder/c/1/0/0" in error for error in errors)
            caught += 1
            # The other layer lies in another file.
            assert len(store.sql("select weight from attention where layer = 0 and example = 0"))
    assert caught == 12


@pytest.mark.parametrize("precision", ["standard", "exact", "compact"])
def test_a_shard_that_vanishes_after_opening_is_damage(made: list[Made], tmp_path: Path, precision: str) -> None:
    root = make_store(tmp_path / "gone.attn", made, precision=precision)
    with open_store(root) as store:
        assert store.units  # every file was there
        (root / "segments/000001/maps.zarr/encoder/c/0/0/0").unlink()
        with pytest.raises(Damaged, match=r"000001/maps\.zarr/encoder/c/0/0/0: it is missing"):
            store.sql("select sum(weight) from attention")
        with pytest.raises(Damaged, match="it is missing"):
            store.attention(4, layer=0)
        assert store.attention(4, layer=1).shape == (3, 9, 9)


def test_an_array_of_another_shape_is_damage(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "shape.attn", made)
    meta = root / "segments/000000/maps.zarr/encoder/zarr.json"
    meta.write_text(meta.read_text().replace('"shape": [\n    2,', '"shape": [\n    3,'))
    with open_store(repin(root, files=True)) as store:
        with pytest.raises(Damaged, match=r"\[3, 3, ") as caught:
            store.sql("select sum(weight) from attention")
        assert caught.value.expected == "float16 [2, 3, cells]"


def test_a_table_that_failed_once_answers_again(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "again.attn", made)
    shard = root / "segments/000000/maps.zarr/encoder/c/0/0/0"
    sound = shard.read_bytes()
    with open_store(root) as store:
        shard.write_bytes(b"\0" * len(sound))
        with pytest.raises(Damaged):
            store.sql("select sum(weight) from attention")
        shard.write_bytes(sound)
        assert len(store.sql("select weight from attention where layer = 0 and head = 0 and example = 0")) == 36


def test_encoder_kind_is_the_makers(made: list[Made]) -> None:
    assert made[0].maps["encoder"].shape[:2] == (ENCODER.layers, ENCODER.heads)
