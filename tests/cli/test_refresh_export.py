"""Tests of `attnstore refresh`, `attnstore export` and `--where`: data in files, talk on standard error."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.errors import BadInput, NotFound
from tests.cli.running import good, invoke, write_recipe
from tests.conftest import SENTENCES, write_arrays


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_arrays(tmp_path / "c", SENTENCES[:3])
    good("ingest", write_recipe(tmp_path / "c"), tmp_path / "s.attn")
    return tmp_path / "s.attn"


def test_refresh_keeps_a_table_and_says_where(store: Path) -> None:
    result = good("refresh", store, "offset_facts", "reach=2")
    assert result.stdout == ""
    assert result.stderr.strip().endswith("offset_facts is in the addition 000001-offset-facts")
    with attnstore.open(store) as opened:
        assert opened.engine.files.parameters("offset_facts") == {"reach": 2}
    assert good("verify", store).exit_code == 0


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["offset_fact"], NotFound, "no such facts"),
        (["offset_facts", "far=2"], BadInput, "no parameter 'far'"),
        (["offset_facts", "reach=far"], BadInput, "an integer"),
    ],
)
def test_refresh_refuses_what_is_not_there(store: Path, words: list[str], error: type[Exception], message: str) -> None:
    result = invoke("refresh", store, *words)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
    assert not list(store.glob("additions/*"))


def test_export_writes_what_ask_answers(store: Path, tmp_path: Path) -> None:
    target = tmp_path / "probe.parquet"
    result = good("export", store, target, "--question", "probe/features", "--at-a-time", "1", "pieces=first")
    assert result.stdout == ""
    with attnstore.open(store) as opened:
        expected = opened.ask("probe/features", pieces="first").to_arrow()
    assert result.stderr.strip().endswith(f"probe.parquet: {len(expected)} rows")
    assert pq.read_table(target).to_pylist() == expected.to_pylist()


def test_export_takes_a_condition_and_a_snapshot(store: Path, tmp_path: Path) -> None:
    good("refresh", store, "pair_rows", "pieces=first")
    for name, options in (("new", []), ("old", ["--snapshot", "1"])):
        target = tmp_path / f"{name}.parquet"
        good("export", store, target, "--question", "probe/features", "--where", "name = 's2'", *options)
        assert set(pq.read_table(target)["example"].to_pylist()) == {2}
    assert pq.read_table(tmp_path / "new.parquet").num_rows == pq.read_table(tmp_path / "old.parquet").num_rows


def test_export_refuses_an_answer_over_all_examples(store: Path, tmp_path: Path) -> None:
    result = invoke("export", store, tmp_path / "x.parquet", "--question", "heads/entropy")
    assert isinstance(result.exception, BadInput)
    assert "attnstore ask" in str(result.exception)
    assert not (tmp_path / "x.parquet").exists()


def test_export_without_a_file_is_wrong_usage(store: Path) -> None:
    assert invoke("export", store, "--question", "probe/features").exit_code == 2
    assert invoke("export", store, "x", "--question", "probe/features", "--at-a-time", "0").exit_code == 2


def test_ask_where_counts_only_those_examples(store: Path) -> None:
    def n(*options: str) -> set[int]:
        found = json.loads(good("ask", "heads/entropy", store, "--format", "json", *options).stdout)
        return {row["n"] for row in found}

    assert n() == {3}
    assert n("--where", "n_words < 6") == {sum(len(text.split()) < 6 for text in SENTENCES[:3])} == {2}
    assert n("--where", "false") == set()


def test_ask_where_shows_a_condition_that_cannot_be_read(store: Path) -> None:
    result = invoke("ask", "heads/entropy", store, "--where", "colour = 'red'")
    assert isinstance(result.exception, NotFound)
    assert "colour" in str(result.exception)


def test_where_as_a_parameter_is_told_to_be_an_option(tiny_store: Path) -> None:
    for words in (["ask", "heads/entropy", tiny_store], ["show", tiny_store, "heads/entropy"]):
        result = invoke(*words, "where=false")
        assert result.exit_code == 2
        assert "--where 'false'" in result.stderr
