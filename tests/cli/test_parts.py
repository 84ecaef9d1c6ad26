"""The commands that share an ingest: what they print, and that what they say to run next does the rest."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.running import good, invoke, write_recipe
from tests.conftest import SENTENCES, write_arrays


def test_plan_names_the_commands_that_make_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 12)
    write_arrays(tmp_path, SENTENCES[:4])
    store = tmp_path / "s.attn"
    planned = good("plan", write_recipe(tmp_path), store, "--format", "json")
    rows = json.loads(planned.stdout)
    assert [(row["segment"], row["first"], row["stop"]) for row in rows] == [(0, 0, 1), (1, 1, 2), (2, 2, 4)]
    assert [row["is_there"] for row in rows] == [False] * 3
    # 6 heads; "the old clock stopped ." is 8 tokens, since "stopped" has two pieces
    assert rows[0]["weights"] == 6 * 8**2
    commands = [shlex.split(line.partition("   (")[0]) for line in planned.stderr.splitlines()[1:]]
    assert [words[:2] for words in commands] == [["attnstore", "run"], ["attnstore", "finish"]]
    assert "segments 0 to 1 are there" in good("run", store, "--segments", "0-1").stderr
    missing = invoke("finish", store)
    assert missing.exit_code != 0
    remedy = re.search(r"attnstore (run .*)$", str(missing.exception))
    assert remedy is not None
    assert "are there" in good(*shlex.split(remedy[1])).stderr
    good(*commands[0][1:])
    assert "4 examples, content " in good(*commands[1][1:]).stderr
    # Another plan of the same tells that all is there.
    again = good("plan", tmp_path / "tiny.toml", store, "--format", "json")
    assert [row["is_there"] for row in json.loads(again.stdout)] == [True] * 3


def test_finish_names_the_evidence_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arrays(tmp_path, SENTENCES[:2])
    store = tmp_path / "s.attn"
    good("ingest", write_recipe(tmp_path), store)
    monkeypatch.setattr("attnstore.job.parts.lacking_evidence", lambda made: ["value_norms"])
    assert "Of value_norms nothing is there. To add it: attnstore ingest RECIPE" in good("finish", store).stderr


def test_ray_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from attnstore.cli import main

    write_arrays(tmp_path, SENTENCES[:2])
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "attnstore.job.on_ray", raising=False)
    words = ["ingest", write_recipe(tmp_path), tmp_path / "s.attn", "--ray", "127.0.0.1:1"]
    monkeypatch.setattr(sys, "argv", ["attnstore", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "pip install 'attnstore[ray]'" in capsys.readouterr().err
