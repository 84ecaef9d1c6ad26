"""Every command does what its help says: data on standard output, talk on standard error."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

import attnstore
from attnstore.catalogue.catalogue import find, questions
from attnstore.cli import COMMANDS
from attnstore.errors import BadInput, Damaged, NotFound
from tests.cli.running import good, invoke, rows


@pytest.fixture(scope="module")
def store(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of it, made by the command, with a tag on its first snapshot and labels in its second."""
    place = tmp_path_factory.mktemp("store") / "s.attn"
    good("ingest", corpus / "tiny.toml", place)
    (place / "tags").mkdir()
    (place / "tags" / "paper.json").write_text('{"snapshot": 1}')
    labels = place.parent / "labels.csv"
    labels.write_text("name,text,label\ns0,x,old\ns1,y,new\n")
    good("annotate", place, "--labels", labels)
    return place


def test_the_help_lists_every_command_in_order() -> None:
    lines = good("--help").stdout.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "][: len(COMMANDS)] == list(
        COMMANDS
    )


def test_a_command_that_is_not_there_is_wrong_usage() -> None:
    result = invoke("aks")
    assert result.exit_code == 2
    assert "No such command 'aks'" in result.stderr


def test_annotate_without_a_file_is_wrong_usage(store: Path) -> None:
    result = invoke("annotate", store)
    assert result.exit_code == 2
    assert "--words, --labels, --mentions, --links or --patterns FILE" in result.stderr


def test_info_says_what_the_store_holds(store: Path) -> None:
    found = {row["what"]: row["value"] for row in rows("info", store)}
    assert found["title"] == "tiny"
    assert found["examples"] == "4 of 4"
    assert found["layers x heads"] == "encoder 2 x 3"
    assert found["path"] == str(store)


def test_questions_lists_every_question() -> None:
    with_python = set(questions())
    assert {row["question"] for row in rows("questions")} == with_python
    assert {"relations/best", "heads/entropy"} <= with_python


def test_a_question_is_described_as_a_page(tmp_path: Path) -> None:
    page = good("questions", "relations/best").stdout
    assert page.startswith("relations/best\n")
    assert "  min_count = 1 (integer)\n" in page
    assert "\nReturns:\n  relation" in page
    good("questions", "relations/best", "-o", tmp_path / "page.txt")
    assert (tmp_path / "page.txt").read_text() == page


def test_a_question_is_described_as_a_row_where_a_format_is_asked_for() -> None:
    (row,) = rows("questions", "relations/best")
    question = find("relations/best")
    assert row["parameters"] == [str(param) for param in question.params.values()]
    assert row["returns"] == [column.name for column in question.returns]
    assert row["sql"] == question.sql


def test_a_question_of_ones_own_is_described_too(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("-- How many.\nselect count(*) as n from tokens where layer = $layer\n")
    assert "layer (any)" in good("questions", tmp_path / "mine.sql").stdout


def test_ask_gives_what_the_library_gives(store: Path) -> None:
    with attnstore.open(store) as opened:
        expected = list(opened.ask("relations/best", min_count=2))
    assert rows("ask", "relations/best", store, "min_count=2") == expected
    assert len(expected) > 0


def test_ask_takes_a_file_of_ones_own(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("-- Words of one length.\nselect form from words where length(form) = $n\n")
    found = rows("ask", tmp_path / "mine.sql", store, "n=3")
    assert {row["form"] for row in found} >= {"the", "old"}
    assert all(len(row["form"]) == 3 for row in found)


def test_a_parameter_without_a_value_or_with_two_is_wrong_usage(store: Path) -> None:
    for words in (["min_count"], ["=3"], ["min_count=1", "min_count=2"]):
        for before in (["ask", "relations/best", store], ["show", store, "relations/best"]):
            result = invoke(*before, *words)
            assert result.exit_code == 2, words
            assert result.stdout == ""


def test_sql_runs_a_statement_with_parameters(store: Path) -> None:
    assert rows("sql", store, "select count(*) as n from heads where layer = $layer", "layer=1") == [{"n": 3}]


def test_sql_reads_a_dash_from_standard_input(store: Path) -> None:
    statement = "-- with a comment\nselect text from examples\nwhere example = 3;\n"
    assert json.loads(good("sql", store, "-", "--format", "json", stdin=statement).stdout) == [{"text": "rain fell"}]
    result = invoke("sql", store, "-", stdin=b"select '\xff'")
    assert isinstance(result.exception, BadInput)


def test_show_draws_the_map_that_is_stored(store: Path, tmp_path: Path) -> None:
    drawn = good("show", store, "3", "--layer", 1, "--head", 2).stdout
    assert drawn.startswith("example 3, encoder layer 1 head 2, tokens\n")
    assert "\x1b" not in drawn  # no colours for a file or a pipe
    assert good("show", store, "s3", "--layer", 1, "--head", 2).stdout == drawn
    for form, start in (("svg", "<svg"), ("html", "<!doctype html>"), ("lines", "<svg")):
        target = tmp_path / f"map.{form}"
        good("show", store, "s3", "--layer", 1, "--head", 2, "--level", "word", "--form", form, "-o", target)
        assert target.read_text(encoding="utf-8").lower().startswith(start)
        assert "rain" in target.read_text(encoding="utf-8")


def test_show_takes_an_odd_number_for_a_name(store: Path) -> None:
    # "²".isdigit() is true in Python, and int("²") fails.
    result = invoke("show", store, "²", "--layer", 0, "--head", 0)
    assert isinstance(result.exception, NotFound)


def test_verify_passes_a_sound_store_and_lists_what_is_broken(store: Path, tmp_path: Path) -> None:
    sound = good("verify", store, "--deep")
    assert (sound.stdout, sound.stderr) == ("", f"{store}: no rules broken\n")
    copy = Path(shutil.copytree(store, tmp_path / "copy.attn"))
    (copy / "segments/000000/words.parquet").unlink()
    result = invoke("verify", copy, "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {"rule": "F4", "where": "segments/000000/words.parquet", "found": "no regular file there"}
    ]
    assert result.stderr == f"{copy}: 1 rule broken\n"


def test_verify_writes_an_empty_list_for_a_sound_store(store: Path, tmp_path: Path) -> None:
    (tmp_path / "findings.txt").write_text("from yesterday")
    good("verify", store, "-o", tmp_path / "findings.txt")
    assert "(no rows)" in (tmp_path / "findings.txt").read_text()


def test_doctor_says_what_is_installed() -> None:
    found = {row["part"]: row["found"] for row in rows("doctor")}
    assert found["duckdb"].startswith("2.")
    assert found["python"].startswith("3.")


def test_doctor_says_that_a_model_cannot_be_used(tmp_path: Path) -> None:
    result = invoke("doctor", "--model", tmp_path, "--format", "json")
    assert isinstance(result.exception, BadInput)
    assert json.loads(result.stdout)[-1] == {"part": "capture", "found": "failed", "needed_for": str(tmp_path)}


def test_demo_shows_answers_and_names_commands_that_run(
    tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fake(recipe: attnstore.Recipe, place: Path) -> attnstore.Store:
        asked.append((recipe.title, place))
        return attnstore.open(tiny_store)

    monkeypatch.setattr("attnstore.job.run.ingest", fake)
    place = tmp_path / "my stores" / "demo.attn"
    place.parent.mkdir()
    page = good("demo", "--store", place).stdout
    assert asked == [("Quickstart, MiniLM", place)]
    assert "relation" in page
    assert "entropy, nats" in page
    shutil.copytree(tiny_store, place)
    suggested = [line.strip() for line in page.splitlines() if line.startswith("   attnstore") and str(place) in line]
    assert len(suggested) == 3
    for line in suggested:
        good(*shlex.split(line)[1:])


@pytest.mark.parametrize("choice", [["--snapshot", "1"], ["--tag", "paper"]])
def test_an_older_snapshot_answers_as_it_did(store: Path, choice: list[str]) -> None:
    text = "select example, label from examples order by example"
    assert [row["label"] for row in rows("sql", store, text)] == ["old", "new", None, None]
    assert [row["label"] for row in rows("sql", store, text, *choice)] == [None] * 4
    with attnstore.open(store, snapshot=1) as first:
        pinned = first.snapshot.content_hash
    assert rows("sql", store, "select 1 as n", *choice, "--expect", pinned[:8]) == [{"n": 1}]
    assert isinstance(invoke("info", store, "--expect", pinned[:8]).exception, Damaged)


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["ask", "heads/entropy"],
        ["sql", "select 1"],
        ["show", "0", "--layer", "0", "--head", "0"],
    ],
    ids=lambda words: words[0],
)
def test_every_reading_command_takes_the_state_of_the_store(store: Path, words: list[str]) -> None:
    before, after = (words[:2], words[2:]) if words[0] == "ask" else (words[:1], words[1:])
    good(*before, store, *after, "--snapshot", "1")
    for choice, error in (
        (["--snapshot", "9"], NotFound),
        (["--tag", "none"], NotFound),
        (["--expect", "00000000"], Damaged),
        (["--expect", "xyz"], BadInput),
        (["--tag", "paper", "--snapshot", "1"], BadInput),
    ):
        result = invoke(*before, store, *after, *choice)
        assert isinstance(result.exception, error), choice
        assert result.stdout == ""
