"""Tests of the SQL vocabulary, of what is checked before a table is used, and of what SQL's errors become."""

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attnstore.errors import AttnStoreError, BadInput, BadQuestion, Damaged, NotFound, NotStored
from attnstore.format.commit import commit, publish, seal, stage
from attnstore.format.manifest import Kept, Kind
from attnstore.format.parquet import TableWriter
from attnstore.store import parquet_files
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import Made, make_store, random_examples


def test_unnested_facts_are_the_lists_layer_by_layer(store: Store) -> None:
    lists = store.sql("select * from stored.token_facts order by example, token").to_arrow().to_pylist()
    found = store.sql("select * from token_facts order by example, token, layer, head").to_arrow().to_pylist()
    assert len(found) == 6 * len(lists)
    for index, row in enumerate(found):
        of, place = lists[index // 6], index % 6
        assert (row["example"], row["token"], row["side"]) == (of["example"], of["token"], "source")
        assert (row["layer"], row["head"]) == divmod(place, 3)
        assert [row[name] for name in ("argmax", "max", "entropy_nats")] == [
            of[name][place] for name in ("argmax", "max", "entropy_nats")
        ]


def test_facts_agree_with_the_maps_beside_them(store: Store) -> None:
    # Two roads to one number; the maps are rounded to float16 of graded step.
    (row,) = store.sql("""
        select max(abs(w - max)) as error, count(*) as n
        from (select example, layer, head, query as token, max(weight) as w from attention group by all)
        join token_facts using (example, layer, head, token)
    """)
    assert row["n"] == 6 * sum(one["n"] for one in store.sql("select count(*) as n from tokens"))
    assert row["error"] < 0.001


def test_tables_that_no_segment_has_are_empty_and_typed(store: Store) -> None:
    for name in ("mentions", "links", "skipped", "additions"):
        assert len(store.sql(f"from {name}")) == 0
    found = store.sql("from mentions").to_arrow().schema
    assert (found.field("start_word").type, found.field("cluster").type) == (pa.int32(), pa.string())


def test_heads_and_segments_come_from_the_manifests(store: Store) -> None:
    heads = store.sql("from heads order by layer, head").to_arrow().to_pylist()
    assert [(row["layer"], row["head"], row["kv_head"]) for row in heads] == [
        (layer, head, head) for layer in (0, 1) for head in range(3)
    ]
    assert {(row["kind"], row["queries"], row["keys"], row["causal"]) for row in heads} == {
        ("encoder", "source", "source", False)
    }
    assert [row["param_group"] for row in heads] == [row["layer"] for row in heads]  # every layer has its own
    segments = store.sql("from segments order by segment").to_arrow().to_pylist()
    assert [(row["segment"], row["n_examples"]) for row in segments] == [(0, 3), (1, 3), (2, 1)]
    assert sum(row["n_bytes"] for row in segments) == store.contents.n_bytes
    assert "word_facts" in segments[0]["tables"]


def test_shared_heads_and_layers_are_told(tmp_path: Path) -> None:
    kinds = {"encoder": Kind(3, 4, 2, "source", "source", False, param_groups=(0, 0, 1))}
    with open_store(make_store(tmp_path / "shared.attn", random_examples(1, (3,), kinds), kinds=kinds)) as store:
        heads = store.sql("from heads order by layer, head").to_arrow().to_pylist()
        assert [row["kv_head"] for row in heads[:4]] == [0, 0, 1, 1]
        assert [row["param_group"] for row in heads[::4]] == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("select layr from token_facts", NotFound, "no column 'layr'"),
        ("from token_fact", NotFound, "no table 'token_fact'"),
        ("from nowhere.words", NotFound, "nowhere"),
        ("select entropee(1)", NotFound, "no scalar function 'entropee'"),
        ("select w.layr from words w", BadQuestion, "layr"),
        ("selec 1", BadQuestion, "syntax error"),
        ("select form + 1 from words", BadQuestion, "VARCHAR"),
        ("select sum(layer) from heads where sum(layer) > 1", BadQuestion, "aggregates"),
        ("select 'x'::integer", BadQuestion, "x"),
        ("select error('it says')", BadQuestion, "it says"),
        ("select 1; select 2", BadQuestion, "2 statements"),
        ("", BadQuestion, "0 statements"),
        ("create table mine as select 1", BadQuestion, "type CREATE"),
        ("copy (select 1) to 'out.csv'", BadQuestion, "type COPY"),
        ("drop view words", BadQuestion, "type DROP"),
        ("select $layer", BadInput, "no value for $layer"),
    ],
)
def test_an_error_of_sql_is_one_of_ours(store: Store, text: str, kind: type[AttnStoreError], found: str) -> None:
    with pytest.raises(kind) as caught:
        store.sql(text)
    assert found in str(caught.value)


def test_an_unknown_name_comes_with_the_nearest(store: Store) -> None:
    with pytest.raises(NotFound) as caught:
        store.sql("select form, lemm from words")
    assert "lemma" in caught.value.expected
    with pytest.raises(NotFound) as caught:
        store.sql("from word_fact")
    assert "word_facts" in caught.value.expected


def test_a_parameter_that_the_statement_does_not_use_is_refused(store: Store) -> None:
    with pytest.raises(BadInput, match="does not use") as caught:
        store.sql("select $layer as x", layer=1, head=2)
    assert "head" in caught.value.found
    assert store.sql("select $layer as x", layer=3).to_arrow().to_pylist() == [{"x": 3}]


def test_numbers_and_arrays_of_numpy_are_values_like_others(store: Store) -> None:
    text = "select layer, head from heads where layer = $layer and head in $heads order by all"
    found = store.sql(text, layer=np.int64(1), heads=np.array([0, 2]))
    assert list(found) == [{"layer": 1, "head": 0}, {"layer": 1, "head": 2}]
    assert found.cite()["params"] == {"layer": 1, "heads": [0, 2]}
    assert list(store.sql("select $x as x, $y as y", x=np.float32(0.5), y=None)) == [{"x": 0.5, "y": None}]


def test_a_table_of_the_caller_is_not_read_by_accident(store: Store) -> None:
    local = pa.table({"x": [1]})
    with pytest.raises(NotFound):
        store.sql("from local")
    assert local.num_rows == 1


def test_pivot_describe_and_dynamic_names_work(store: Store) -> None:
    assert len(store.sql("pivot (select kind, layer from heads) on layer using count(*)")) == 1
    assert len(store.sql("describe words")) == 16
    assert len(store.sql("from query_table('heads')")) == 6
    assert "plan" in repr(store.sql("explain select 1")).lower()


def _flip(path: Path) -> None:
    spoilt = bytearray(path.read_bytes())
    spoilt[len(spoilt) // 2] ^= 1
    path.write_bytes(spoilt)


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from words",
        "select count(*) from stored.words",
        "select (select max(word) from words) as m",
        "with words2 as (from words) from words2",
        'from "WORDS" limit 1',
        "from memory.main.words limit 1",
        "from query_table('words')",
        "summarize words",
        "pivot (from words) on upos using count(*)",
    ],
)
def test_a_flipped_bit_is_found_before_its_table_is_used(folder: Path, tmp_path: Path, text: str) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "flip.attn"))
    _flip(root / "segments/000001/words.parquet")
    with open_store(root) as store:
        assert len(store.sql("from tokens")) > 0  # another table
        with pytest.raises(Damaged, match="crc32c") as caught:
            store.sql(text)
        assert str(root / "segments/000001/words.parquet") in str(caught.value)


def test_views_are_followed_to_the_files_they_read(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "flip.attn"))
    _flip(root / "segments/000002/word_facts.parquet")
    with open_store(root) as store:
        assert len(store.sql("from token_facts")) > 0
        with pytest.raises(Damaged, match="word_facts"):
            store.ask("relations/accuracy")
        with pytest.raises(Damaged, match="word_facts"):
            store.sql("from word_facts")


def test_a_file_that_vanishes_after_opening_is_named(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "gone.attn"))
    with open_store(root) as store:
        (root / "segments/000000/examples.parquet").unlink()
        with pytest.raises(Damaged, match=r"000000/examples\.parquet"):
            store.sql("from examples")


def test_a_file_whose_footer_is_spoilt_is_named(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "footer.attn"))
    path = root / "segments/000000/words.parquet"
    path.write_bytes(path.read_bytes()[:-4] + b"PAR2")
    with open_store(root) as store, pytest.raises(Damaged, match=r"000000/words\.parquet: crc32c"):
        store.sql("from words")


def test_a_file_is_checked_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.sql("from words")
    monkeypatch.setattr(parquet_files, "check_file", lambda *_: pytest.fail("checked again"))
    store.sql("from words")


def test_odd_letters_in_the_path_are_only_letters(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "it's [1] *?\" split=dev" / "ä.attn", made[:2])
    with open_store(root) as store:
        assert store.sql("from examples").columns == tuple(store.tables["examples"])
        assert len(store.sql("select weight from attention where layer = 0 and head = 0 and example = 1")) == 121


def _add(root: Path, name: str, rows: dict[str, list[dict[str, Any]]], **facts: object) -> None:
    folder = f"additions/{name}"
    staging = stage(root, folder)
    counts = {}
    for table, values in rows.items():
        writer = TableWriter(staging, table)
        writer.append_rows(values)
        counts[table] = writer.close()
    seal(staging, folder, facts, counts)
    assert publish(staging, root, folder)
    commit(root, "0123456789abcdef")


def test_the_newest_addition_replaces_a_table(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "more.attn"))
    _add(root, "0001-skipped", {"skipped": [{"name": "a", "reason": "too long"}]}, scope="store")
    _add(root, "0002-skipped", {"skipped": [{"name": "b", "reason": "empty"}]}, scope="store")
    with open_store(root) as store:
        assert store.sql("from skipped").to_arrow()["name"].to_pylist() == ["b"]
        assert store.sql("from additions order by all").to_arrow()["addition"].to_pylist() == [
            "0001-skipped",
            "0002-skipped",
        ]
        assert len(store.sql("from words")) == 50
    with open_store(root, snapshot=2) as store:
        assert store.sql("from skipped").to_arrow()["name"].to_pylist() == ["a"]


def test_an_addition_to_one_segment_replaces_the_rows_of_that_segment(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "more.attn"))
    with open_store(root) as store:
        words = store.sql("from stored.words where example = 6").to_arrow().to_pylist()
    changed = [{**word, "deprel": "new"} for word in words]
    _add(root, "0001-words", {"words": changed}, scope="segment", segment="000002")
    with open_store(root) as store:
        assert len(store.sql("from words")) == 50
        found = store.sql("select example, count(*) as n from words where deprel = 'new' group by all")
        assert list(found) == [{"example": 6, "n": 8}]
        # The maps of that segment are still read with their words.
        assert store.attention(6, level="word", specials=False).queries == tuple(word["form"] for word in words)


def test_an_additional_table_can_be_read_by_name(folder: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "more.attn"))
    place = stage(root, "additions/0001-ablations")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"layer": [0], "delta": [0.5]}), place / "ablations.parquet")
    seal(place, "additions/0001-ablations", {"scope": "store"}, {"ablations": 1})
    assert publish(place, root, "additions/0001-ablations")
    commit(root, "0123456789abcdef")
    with open_store(root) as store:
        assert list(store.sql("from stored.ablations")) == [{"layer": 0, "delta": 0.5}]


def test_facts_that_were_not_kept_are_refused_and_not_empty(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "few.attn", made, tables=("head_facts",))
    with open_store(root) as store:
        assert len(store.sql("from head_facts")) == 42
        for table in ("token_facts", "token_masses", "word_facts", "stored.word_facts"):
            with pytest.raises(NotStored, match="computes them from the maps"):
                store.sql(f"select count(*) from {table}")
        assert "word_facts" in store.tables


def assert_alike(found: object, expected: object) -> None:
    """Equal, but for the last digits of sums: DuckDB adds in the order in which its own threads come."""
    if not isinstance(expected, pa.Table):
        assert found == expected
        return
    assert isinstance(found, pa.Table)
    assert found.schema == expected.schema
    for name in expected.column_names:
        if pa.types.is_floating(expected.schema.field(name).type):
            np.testing.assert_allclose(found[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9)
        else:
            assert found[name].equals(expected[name])


def test_eight_threads_get_the_answers_of_one(folder: Path) -> None:
    asked: list[Callable[[Store], object]] = [
        lambda store: store.ask("relations/best").to_arrow(),
        lambda store: store.ask("heads/entropy", eps=0.01).to_arrow(),
        lambda store: store.ask("heads/special").to_arrow(),
        lambda store: store.sql("select layer, sum(weight) from attention group by all order by all").to_arrow(),
        lambda store: store.sql("select count(*) from word_attention where head = 1").to_arrow(),
        lambda store: store.attention("e3", level="word").weights.tobytes(),
        lambda store: store.sql("select count(*) from token_facts where entropy_nats > 1").to_arrow(),
        lambda store: store.ask("audit/rows", layer=1).to_arrow(),
    ]
    with open_store(folder) as store:
        expected = [ask(store) for ask in asked]
    with open_store(folder) as store, ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)

        def work(start: int) -> list[tuple[int, object]]:
            barrier.wait()
            order = [(start + step) % len(asked) for step in range(len(asked))]
            return [(index, asked[index](store)) for index in order]

        for answers in pool.map(work, range(8)):
            assert sorted(index for index, _ in answers) == list(range(8))
            for index, answer in answers:
                assert_alike(answer, expected[index])


def test_maps_that_were_not_kept_leave_facts_to_ask(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "facts.attn", made, kept=Kept("none", None, None, None))
    with open_store(root) as store:
        assert len(store.ask("heads/entropy")) == 6
        with pytest.raises(NotStored, match="no maps"):
            store.ask("audit/rows")
        assert np.isnan(store.ask("heads/positions").to_numpy()["value"]).sum() == 0
