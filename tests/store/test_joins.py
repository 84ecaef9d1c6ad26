"""Tests of statements that join a virtual table: the same answers, of less reading."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from attnstore.errors import AttnStoreError
from attnstore.store import database
from attnstore.store.attention_table import VirtualTable
from attnstore.store.joins import narrowed
from attnstore.store.parse_tree import nodes
from attnstore.store.store import Store

READ = [
    # Each statement, its parameters, and the heads and examples that it may read (None for every example).
    ("select sum(weight) from attention a join (values (3), (5)) v(example) using (example)", {}, 6, 2),
    ("select sum(weight) from attention a join (values (3), (5)) v(e) on e = a.example and layer = 0", {}, 3, 2),
    ("select sum(weight) from attention, (select 2 as e) p where e = example", {}, 6, 1),
    ("select sum(weight) from attention join (values (0, 1), (1, 2)) h(layer, head) using (layer, head)", {}, 2, None),
    ("select sum(weight) from attention where (layer, head) in ((0, 1), (1, 2))", {}, 2, None),
    ("select sum(weight) from attention where (head, layer) in (values (1, 0)) and example < 3", {}, 1, 3),
    ("select sum(weight) from attention where example in (select example from examples where n_tokens > 12)", {}, 6, 1),
    ("select sum(weight) from attention where example = (select max(example) from examples)", {}, 6, 1),
    ("select sum(weight) from attention a semi join (select 4 as x) p on p.x = a.example", {}, 6, 1),
    ("select e.name, sum(weight) from attention a join examples e using (example)"
     " where e.name like 'e%' and e.n_tokens > $n group by all order by all", {"n": 12}, 6, 1),
    ("with p as (select example from examples where name = $name) select sum(weight) from attention join p"
     " using (example)", {"name": "e2"}, 6, 1),
    ("with p as (select 1 as example), q as (select example + 1 as example from p)"
     " select p.example, sum(weight) from attention a join q using (example), p group by all", {}, 6, 1),
    ("select * exclude (weight), round(weight, 3) as w from (select a.* from \"Attention\" as a join"
     " (values ('encoder', 1, 2, 3)) h(kind, layer, head, example) using (kind, layer, head, example))"
     " order by query, key limit 5", {}, 1, 1),
    ("select sum(weight) from word_attention a join (values (2, 1)) v(e, l) on e = example and l = layer", {}, 3, 1),
    ("select (select sum(weight) from attention a join (select 1 as example) p using (example)) as s", {},
     6, 1),
    ("select a.example, count(*) from attention a join attention b using (example, layer, head, query, key)"
     " join (values (1)) p(example) using (example) group by all", {}, 6, 1),
]  # fmt: skip


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """Heads and examples of each scan of a virtual table."""
    found: list[tuple[int, int | None]] = []
    original = VirtualTable._rows

    def watched(self: VirtualTable, chosen: Any, wanted: set[str]) -> Iterator[pa.RecordBatch]:
        found.append((len(chosen.heads), None if chosen.examples is None else len(chosen.examples)))
        return original(self, chosen, wanted)

    monkeypatch.setattr(VirtualTable, "_rows", watched)
    return found


def answer(store: Store, text: str, params: dict[str, Any]) -> pa.Table | type[AttnStoreError]:
    """The answer, or the class of the error."""
    try:
        return store.sql(text, **params).to_arrow()
    except AttnStoreError as error:
        return type(error)


def plainly(store: Store, text: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The answer to the statement as it stands."""
    with monkeypatch.context() as patch:
        patch.setattr(database, "narrowed", lambda *_: None)
        return answer(store, text, params)


@pytest.mark.parametrize(("text", "params", "heads", "examples"), READ, ids=[text for text, *_ in READ])
def test_a_join_reads_the_heads_and_examples_that_it_names(
    store: Store,
    scans: list[tuple[int, int | None]],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    params: dict[str, Any],
    heads: int,
    examples: int | None,
) -> None:
    found = answer(store, text, params)
    assert scans
    assert set(scans) == {(heads, examples)}
    same(found, plainly(store, text, params, monkeypatch))


UNCHANGED = [
    # What a condition names may be a column of an outer query, and not of a table that it does not see.
    "select count(*) from examples e where exists (from attention a semi join (values (3, 1)) p(x, n_tokens)"
    " on a.example = p.x where a.example = e.example and n_tokens > 8)",
    "select count(*) from examples p where exists (from attention a semi join (select example from words"
    " where word = 5) p using (example) where p.example = 0)",
    "select y, (select count(*) from attention a join (select 3 as example) p on a.example = p.example and a.layer = y"
    " join (values (1)) q(y) on true) as n from (values (0), (1)) o(y) order by y",
    "select count(*) from attention a join (select 1 as example, current_timestamp as t) p using (example)"
    " where p.t = current_timestamp",
    "select count(*) from attention a join (select 1 as example, now() as t) p using (example) where p.t = now()",
    "select count(*), sum(weight) from attention a left join (select 3 as example) p using (example)",
    "select count(*), sum(weight) from (select 3 as example) p right join attention a using (example)",
    "select count(*) from attention a full join (select 99 as example) p using (example)",
    "select count(*) from attention a anti join (select 3 as example) p using (example)",
    "select count(*) from attention where example not in (select 3)",
    "select count(*) from attention where example in (select 3) or layer = 1",
    "select count(*) from attention where not (layer, head) in ((0, 1), (1, 2))",
    "select count(*) from attention where example <> all (select 3)",
    "select count(*) from attention where example > any (select 3)",
    "select count(*) from attention a join (select 3 as example) p on a.example >= p.example",
    "select count(*) from attention a join (select 3 as example) p on a.example + 1 = p.example",
    "select count(*) from attention a join (select 3.4 as example) p on a.example = p.example::integer",
    "select count(*) from attention a join (select 3.0 as example) p using (example)",
    "select count(*) from attention a join (select '3' as example) p using (example)",
    "select count(*) from attention a join (values (3), (null)) p(example) using (example)",
    "select count(*) from attention a join (values (3), (3)) p(example) using (example)",
    "select count(*) from attention a positional join (select 3 as example) p",
    "select count(*) from attention a natural join (select 3 as example) p",
    "select count(*) from attention tablesample 100% a join (select 3 as example) p using (example)",
    "select count(*) from examples e where exists (from attention a where a.example = e.example and weight > 0.9)",
    "select name, (select count(*) from attention a join (select 3 as example) p using (example)"
    " where a.example = e.example) from examples e order by all",
    "select name, n from examples e, lateral (select count(*) as n from attention a where a.example = e.example)"
    " order by all",
    "with attention as (select 3 as example, 7 as weight) select sum(weight) from attention join (select 3 as example)"
    " using (example)",
    "with p as (select * from attention where layer = 0 and head = 0) select count(*) from attention a join p"
    " using (example, layer, head, query, key)",
    "with recursive p as (select 1 as example union all select example + 1 from p where example < 3)"
    " select count(*), sum(weight) from attention join p using (example)",
    "with examples as (select 2 as example) select sum(weight) from attention join examples using (example)",
    "with p as (select 2 as example) select sum(weight) from attention join p using (example) union all"
    " (with p as (select 3 as example) select sum(weight) from attention join p using (example))",
    "select sum(weight) from attention join (select 2 as example) using (example) union all"
    " select count(*) from attention union all select sum(weight) from attention where example in (select 4)",
    "select count(*) from attention a(example, kind) join (select 'encoder' as kind) p using (kind)",
    "select count(*) from attention a join (select 3 as example) a using (example)",
    "select count(*) from attention a join (select 3 as example, 4 as example) p using (example)",
    "select count(*), p.x from attention a join (select 3 as example, null as x) p using (example) group by all",
    "select count(*) from attention a join examples e using (example) join tokens t using (example)"
    " where t.token = 0 and e.n_tokens < 9 and weight > 0.25",
    "select count(*) from attention a join examples e using (example) where e.n_tokens + a.query < 9",
    "select count(*) from attention a join range(3) r(example) using (example)",
    "select count(*) from attention a join examples e on a.example = e.example and random() >= 0",
    "select count(*) from (attention a join (select 3 as example) p using (example)) full join (select 1) q on true",
    "select example, layer, sum(weight) over (partition by layer order by query, key, head) as w from attention"
    " where example in (select 1) qualify row_number() over (order by layer, head, query, key) < 5 order by all",
    "select count(*) from attention a join (select example from no_such_table) p using (example)",
    "select count(*) from attention a join (select 3 as example) p using (no_such_column)",
    "select count(*) from attention a join (select 3 as example) p on a.example = p.nothing",
    "select count(*) from attention a join (select example, layer from attention limit 0) p using (example, layer)",
    "select count(*) from attention where example = (select unnest([1, 2]))",
    "select a.example is null, count(*) from (select 9 as example union select 1) p left join attention a"
    " on a.example = p.example group by all order by all",
    "describe select * from attention join (select 1 as example) using (example)",
    "select sum(weight) from attention where example in (select 'x'::integer)",
    "select count(*) from attention where kind in (select 'encoder') and (kind, layer) in (select 'encoder', 1)",
    "select * from attention semi join (values ('Encoder' collate nocase)) p(kind) using (kind) limit 3",
    "select count(*) as n from attention a join (select 1 as example) p using (example) having n > 0 order by all",
]


@pytest.mark.parametrize("text", UNCHANGED)
def test_whatever_is_joined_the_answer_is_that_of_the_statement_as_it_stands(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    same(answer(store, text, {}), plainly(store, text, {}, monkeypatch))


def test_a_random_choice_is_made_once(store: Store) -> None:
    text = """
        with drawn as (select example from examples order by random() limit 2),
            also as (from drawn)
        select (select list(example order by example) from drawn) as drawn,
            list(distinct example order by example) as read
        from attention join also using (example)
    """
    for _ in range(6):
        (row,) = store.sql(text)
        assert row["drawn"] == row["read"]


def test_a_large_table_of_keys_is_left_to_duckdb(store: Store, scans: list[tuple[int, int | None]]) -> None:
    text = "select count(*) as n from attention join (select range as example from range({})) using (example)"
    (small,), (large,) = store.sql(text.format(2)), store.sql(text.format(200_000))
    assert scans == [(6, 2), (6, None)]
    assert small["n"] < large["n"]


def test_a_question_of_ones_own_reads_what_it_joins(
    store: Store, scans: list[tuple[int, int | None]], tmp_path: Any
) -> None:
    path = tmp_path / "mine.sql"
    path.write_text(
        "-- Sums of the longest examples.\n-- reads: attention\n"
        "select example, sum(weight) as w from attention join examples using (example) where n_tokens > 12"
        " group by all order by all\n"
    )
    assert len(store.ask(str(path))) == 1
    assert scans == [(6, 1)]


def test_what_is_joined_looks_its_rows_up_in_the_small_table(store: Store) -> None:
    for text in ("attention join {} using (example)", "{} join attention using (example)"):
        text = f"select sum(weight) from {text.format('(select 3 as example) p')}"
        cursor = store.engine.database._connection.cursor()
        smaller = narrowed(cursor, text, {}, {"attention": store.engine._attention(None)})
        assert smaller is not None
        ((_, plan),) = cursor.sql(f"explain (format json) {smaller[0]}").fetchall()
        (join,) = (node for node in nodes(json.loads(plan)) if "JOIN" in str(node.get("name")))
        # The right side is held in memory.
        assert ["ARROW" in json.dumps(side).upper() for side in join["children"]] == [True, False]


def same(found: Any, expected: Any) -> None:
    """Assert that two answers are the same table, or the same kind of error."""
    if isinstance(expected, type):
        assert found is expected
        return
    assert isinstance(found, pa.Table)
    assert found.schema == expected.schema
    for name, column in enumerate(found.columns):
        for one, other in zip(column.to_pylist(), expected.column(name).to_pylist(), strict=True):
            assert one == (pytest.approx(other, rel=1e-12) if isinstance(other, float) else other)
