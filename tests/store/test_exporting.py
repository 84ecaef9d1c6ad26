"""Tests that an export is the answer, written some examples at a time, and whole or absent."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from attnstore.errors import BadInput, NotFound
from attnstore.store import exporting
from attnstore.store.exporting import export
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, make_store, random_examples

PER_EXAMPLE = ["probe/features", "patterns/maps", "patterns/features"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = random_examples(12, (6, 9, 4, 11, 7), {"encoder": ENCODER})
    with open_store(make_store(tmp_path_factory.mktemp("x") / "x.attn", made, precision="exact")) as opened:
        yield opened


@pytest.mark.parametrize("at_a_time", [1, 2, 5, 99])
@pytest.mark.parametrize("question", PER_EXAMPLE)
def test_the_file_holds_the_answer_whatever_the_chunks(
    store: Store, question: str, at_a_time: int, tmp_path: Path
) -> None:
    rows = export(store, question, tmp_path / "x.parquet", at_a_time=at_a_time)
    found, expected = pq.read_table(tmp_path / "x.parquet"), store.ask(question).to_arrow()
    assert rows == len(found) == len(expected) > 0
    assert found.to_pylist() == expected.to_pylist()
    assert found.column_names == expected.column_names
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_parameters_and_the_condition_reach_every_chunk(store: Store, tmp_path: Path) -> None:
    params: dict[str, object] = {"size": 3, "layer": 1}
    where = "example > 0 and n_tokens > 6 -- long ones"
    export(store, "patterns/maps", tmp_path / "x.parquet", params, where=where, at_a_time=1)
    expected = store.ask("patterns/maps", where=where, **params).to_arrow()
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == expected.to_pylist()
    assert {row["layer"] for row in expected.to_pylist()} == {1}


def test_no_example_gives_a_file_without_rows(store: Store, tmp_path: Path) -> None:
    assert export(store, "probe/features", tmp_path / "x.parquet", where="false") == 0
    found = pq.read_table(tmp_path / "x.parquet")
    assert found.schema.equals(store.ask("probe/features").to_arrow().schema)


def test_only_the_examples_of_one_chunk_are_asked_for(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = exporting.ask

    def counted(*args: object) -> object:
        found = real(*args)  # type: ignore[arg-type]
        asked.append(sorted(set(found.to_arrow()["example"].to_pylist())))
        return found

    monkeypatch.setattr(exporting, "ask", counted)
    export(store, "probe/features", tmp_path / "x.parquet", at_a_time=2)
    assert asked == [[0, 1], [2, 3], [4]]


def test_an_export_that_fails_leaves_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = exporting.ask

    def stops(*args: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(exporting, "ask", stops)
    with pytest.raises(KeyboardInterrupt):
        export(store, "probe/features", tmp_path / "x.parquet", at_a_time=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        ("heads/entropy", {}, "column `example`"),
        ("audit/misaligned", {}, "without `limit`"),
        ("probe/features", {"at_a_time": 0}, "1 or more"),
        ("compare/pairs", {}, "attnstore"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    store: Store, question: str, options: dict[str, int], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=message):
        export(store, question, tmp_path / "x.parquet", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays_as_it_is(store: Store, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("thesis")
    with pytest.raises(BadInput, match="is there already"):
        export(store, "probe/features", tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").read_text() == "thesis"


def test_a_folder_that_is_not_there_and_an_unknown_question_are_said(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no folder"):
        export(store, "probe/features", tmp_path / "none" / "x.parquet")
    with pytest.raises(NotFound):
        export(store, "probe/feature", tmp_path / "x.parquet")


def test_the_kind_is_a_parameter_as_everywhere(tmp_path: Path) -> None:
    made = random_examples(3, (5, 7), KINDS)
    with open_store(make_store(tmp_path / "k.attn", made, kinds=KINDS, precision="exact")) as store:
        export(store, "probe/features", tmp_path / "d.parquet", {"kind": "decoder"}, at_a_time=1)
        expected = store.ask("probe/features", kind="decoder").to_arrow()
    assert pq.read_table(tmp_path / "d.parquet").to_pylist() == expected.to_pylist()
