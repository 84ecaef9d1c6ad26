"""Tests of two stores in one connection: which examples are pairs, what SQL sees, what is refused."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput, BadQuestion, Damaged, NotAStore, NotFound, NotStored
from attnstore.store.comparison import Comparison, compare
from attnstore.store.store import open as open_store
from tests.store.comparing import turned_stores
from tests.store.making import ENCODER, Made, make_store, random_examples


@pytest.fixture(scope="module")
def turned(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Comparison, list[Made]]]:
    yield from turned_stores(made, tmp_path_factory.mktemp("turned"))


def test_who_has_no_partner_is_counted_and_told_why(made: list[Made], tmp_path: Path) -> None:
    rewritten = replace(random_examples(99, (5,), {"encoder": ENCODER})[0], name="e1")
    a, b = make_store(tmp_path / "a.attn", made), make_store(tmp_path / "b.attn", [made[0], rewritten, *made[2:6]])
    with compare(a, b) as comparison:
        assert [tuple(row.values()) for row in comparison.ask("compare/pairs")] == [
            ("paired", "tokens", 5, "e0"),
            ("only_a", "text", 1, "e1"),
            ("only_a", "name", 1, "e6"),
            ("only_b", "text", 1, "e1"),
        ]
        assert {row["n"] for row in comparison.ask("compare/cosine")} == {5}
        assert {(row["n_a"], row["n_b"]) for row in comparison.ask("compare/heads")} == {(5, 5)}
        assert {(row["n_a"], row["n_b"]) for row in comparison.ask("compare/heads", paired=False)} == {(7, 6)}
        assert "5 with equal tokens" in repr(comparison)
        assert "2 of a, 1 of b" in repr(comparison)


def test_equal_inputs_are_paired_one_to_one_by_name(made: list[Made], tmp_path: Path) -> None:
    twice = [replace(made[0], name=name) for name in ("x", "y", "z")]
    a, b = make_store(tmp_path / "a.attn", twice), make_store(tmp_path / "b.attn", [twice[1], twice[0]])
    with compare(a, b) as comparison:
        rows = comparison.pairs.pairs.to_pylist()
        assert [(row["example_a"], row["example_b"]) for row in rows] == [(0, 1), (1, 0)]
        assert [row["name"] for row in comparison.pairs.unpaired.to_pylist()] == ["z"]


def test_other_texts_under_the_same_names_are_refused_with_the_first(made: list[Made], tmp_path: Path) -> None:
    other = random_examples(99, (4, 5, 6), {"encoder": ENCODER})
    a, b = make_store(tmp_path / "a.attn", made[:3]), make_store(tmp_path / "b.attn", other)
    with compare(a, b) as comparison:
        for question in ("compare/cosine", "compare/heads", "compare/relations"):
            with pytest.raises(BadInput, match=r"'e0' reads '.*' in A and '.*' in B"):
                comparison.ask(question)
        assert [row["item"] for row in comparison.ask("compare/pairs")] == ["only_a", "only_b"]
        assert len(comparison.ask("compare/heads", paired=False)) == 48


def test_stores_without_a_name_in_common_are_refused(made: list[Made], tmp_path: Path) -> None:
    other = [replace(one, name=f"f{n}") for n, one in enumerate(random_examples(9, (4, 5), {"encoder": ENCODER}))]
    with (
        compare(make_store(tmp_path / "a.attn", made), make_store(tmp_path / "b.attn", other)) as comparison,
        pytest.raises(BadInput, match="A has an example 'e0' and B has none"),
    ):
        comparison.ask("compare/cosine")


def test_sql_reads_both_stores_and_their_pairs(turned: tuple[Comparison, list[Made]]) -> None:
    comparison, _ = turned
    (row,) = comparison.sql(
        """
        select count(*) as n, sum(abs(a.weight - b.weight)) as moved
        from pairs
        join a.attention as a on a.example = example_a
        join b.attention as b on b.example = example_b and (b.query, b.key) = (a.query, a.key)
        where a.layer = $layer and b.layer = 1 and a.head = 2 and b.head = 2
    """,
        layer=np.int64(1),
    )
    heads = {(one["layer"], one["head"]): one for one in comparison.ask("compare/cosine")}
    tokens = comparison.sql("select sum(n_tokens * n_tokens) as n from a.examples").to_numpy()["n"][0]
    assert row["n"] == tokens
    assert row["moved"] > 0
    assert heads[1, 2]["tv"] > 0
    tables = comparison.tables
    assert tables["a.examples"] == tables["b.examples"] == comparison.a.tables["examples"]
    assert tables["a.attention"] == comparison.a.tables["attention"]
    assert list(tables["pairs"]) == ["example_a", "example_b", "equal_tokens", "equal_words"]
    with pytest.raises(NotFound, match="'wrds'"):
        comparison.sql("from a.wrds")
    with pytest.raises(NotFound):
        comparison.sql("from words")
    with pytest.raises(BadQuestion, match="type CREATE"):
        comparison.sql("create table a.main.x as select 1")
    with pytest.raises(NotStored, match="token_masses"):
        comparison.sql("from b.token_masses")


def test_a_question_of_ones_own_may_name_both(turned: tuple[Comparison, list[Made]], tmp_path: Path) -> None:
    comparison, _ = turned
    mine = tmp_path / "mine.sql"
    mine.write_text("select count(*) as n from a.words join b.words using (word) where word < $most")
    assert comparison.ask(str(mine), most=1).to_numpy()["n"].tolist() == [49]
    mine.write_text("-- Mine.\n-- reads: map_differences(level=word)\nselect count(*) as n from map_differences")
    assert comparison.ask(str(mine)).to_numpy()["n"].tolist() == [42]
    mine.write_text("-- Mine.\n-- reads: map_differences(lvel=word)\nselect count(*) as n from map_differences")
    with pytest.raises(BadQuestion, match="'lvel'"):
        comparison.ask(str(mine))


def test_one_store_is_not_asked_about_two_nor_two_about_one(turned: tuple[Comparison, list[Made]]) -> None:
    comparison, _ = turned
    with pytest.raises(BadInput, match=r"it compares two stores.*attnstore compare QUESTION A B"):
        comparison.a.ask("compare/cosine")
    with pytest.raises(BadInput, match="it is asked of one store"):
        comparison.ask("heads/entropy")


def test_a_citation_names_both_stores(turned: tuple[Comparison, list[Made]]) -> None:
    comparison, _ = turned
    cited = comparison.ask("compare/cosine").cite()
    assert cited["content_hash"] == comparison.a.snapshot.content_hash
    assert cited["compared_with"]["content_hash"] == comparison.b.snapshot.content_hash
    assert cited["content_hash"] != cited["compared_with"]["content_hash"]
    assert cited["params"] == {"kind": "encoder", "level": "token", "eps": 0.001}
    json.dumps(cited)


def test_threads_may_share_a_comparison(folder: Path) -> None:
    with compare(folder, folder) as comparison, ThreadPoolExecutor(8) as pool:
        asked = ["compare/cosine", "compare/heads", "compare/pairs", "compare/relations"] * 4
        found = list(pool.map(lambda name: comparison.ask(name).to_arrow().to_pylist(), asked))
    # Means differ in their last digit by the order in which DuckDB's own threads add.
    for index, rows in enumerate(found):
        assert rows == [pytest.approx(row, abs=1e-12) for row in found[index % 4]]


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_damaged_file_of_either_store_is_found_before_it_is_used(made: list[Made], tmp_path: Path, side: str) -> None:
    for name in ("a", "b"):
        make_store(tmp_path / name, made[:2])
    (path,) = (tmp_path / side).glob("segments/*/head_facts.parquet")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with compare(tmp_path / "a", tmp_path / "b") as comparison:
        assert len(comparison.ask("compare/cosine")) == 6
        with pytest.raises(Damaged, match="crc32c") as caught:
            comparison.ask("compare/heads")
        assert str(path) in str(caught.value)


def test_stores_that_were_open_stay_open_and_folders_are_closed(folder: Path, tmp_path: Path) -> None:
    with open_store(folder) as store:
        comparison = attnstore.compare(store, folder)
        opened = comparison.b
        comparison.close()
        assert len(store.ask("heads/entropy")) == 6
        with pytest.raises(BadInput, match="the store was closed"):
            opened.ask("heads/entropy")
        with pytest.raises(BadInput, match="the comparison was closed"):
            comparison.sql("select 1")
    with pytest.raises(NotAStore):
        compare(folder, tmp_path)
