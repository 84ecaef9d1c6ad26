"""Tests of `attnstore cite`, of what `attnstore export` gives to others, and of the pins of `attnstore compare`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput, Damaged, NotFound
from tests.cli.running import good, invoke, process


def test_a_store_is_cited_in_three_forms(tiny_store: Path, tmp_path: Path) -> None:
    with attnstore.open(tiny_store) as store:
        pinned = store.snapshot.content_hash
    assert pinned in good("cite", tiny_store).stdout
    assert good("cite", tiny_store, "--format", "bibtex").stdout.startswith(f"@misc{{attnstore-{pinned[:8]},")
    good("cite", tiny_store, "--format", "json", "-o", tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["content_hash"] == pinned
    assert "store that is cited" in good("cite", "--check", tmp_path / "c.json", tiny_store).stderr


def test_an_answer_is_cited_and_checked(tiny_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    words = ["relations/best", "min_count=1", "--where", "n_words > 3"]
    good("cite", tiny_store, *words, "--format", "json", "-o", path)
    assert json.loads(path.read_text())["params"]["min_count"] == 1
    result = good("cite", "--check", path, tiny_store)
    assert (result.stdout, "same bytes" in result.stderr) == ("", True)
    path.write_text(path.read_text().replace('"min_count": 1', '"min_count": 999'))
    assert isinstance(invoke("cite", "--check", path, tiny_store).exception, Damaged)


def test_a_citation_that_does_not_hold_ends_with_status_1_and_one_line(tiny_store: Path, tmp_path: Path) -> None:
    good("cite", tiny_store, "heads/entropy", "--format", "json", "-o", tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    (tmp_path / "c.json").write_text(text.replace('"rows": 6', '"rows": 5'))
    done = process("cite", "--check", tmp_path / "c.json", tiny_store)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().count("\n") == 1
    assert "another answer, of 6 rows" in done.stderr.decode()


@pytest.mark.slow
def test_a_comparison_is_cited_and_checked(tiny_store: Path, make_store: Any, tmp_path: Path) -> None:
    other, path = make_store("b.attn", keep__precision="exact"), tmp_path / "c.json"
    good("cite", tiny_store, "compare/cosine", "--with", other, "--format", "json", "-o", path)
    assert "same bytes" in good("cite", "--check", path, tiny_store, "--with", other).stderr
    assert isinstance(invoke("cite", "--check", path, tiny_store).exception, BadInput)
    assert "Compared with" in good("cite", tiny_store, "compare/cosine", "--with", other).stdout


def test_words_that_do_not_go_together_are_wrong_usage(tiny_store: Path, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}")
    for words in (
        ["cite", "--check", tmp_path / "c.json", tiny_store, "heads/entropy"],
        ["cite", tiny_store, "--where", "true"],
        ["export", tiny_store, tmp_path / "x"],
        ["export", tiny_store, tmp_path / "x", "size=3", "--maps", "npz"],
        ["export", tiny_store, tmp_path / "x", "--maps", "npz", "--question", "patterns/maps"],
        ["export", tiny_store, tmp_path / "x", "--maps", "npz", "--no-text"],
        ["export", tiny_store, tmp_path / "x", "--question", "patterns/maps", "--layers", "0"],
        ["export", tiny_store, tmp_path / "x", "--no-text", "--kind", "encoder"],
        ["export", tiny_store, tmp_path / "x", "--maps", "npz", "--layers", "0-"],
        ["export", tiny_store, tmp_path / "x", "--maps", "npz", "--layers", "1,0-2"],
        ["export", tiny_store, tmp_path / "x", "--maps", "npz", "--layers", "2-1"],
    ):
        assert invoke(*words).exit_code == 2, words
    assert not (tmp_path / "x").exists()


def test_cite_refuses_another_state(tiny_store: Path) -> None:
    assert isinstance(invoke("cite", tiny_store, "--expect", "0" * 8).exception, Damaged)
    assert isinstance(invoke("cite", tiny_store, "--snapshot", "9").exception, NotFound)
    assert isinstance(invoke("cite", tiny_store, "--tag", "paper").exception, NotFound)


def test_export_writes_chosen_maps(tiny_store: Path, tmp_path: Path) -> None:
    target = tmp_path / "m.npz"
    options = ["--where", "name in ('s1', 's4')", "--layers", "1", "--heads", "0,2", "--level", "word"]
    result = good("export", tiny_store, target, "--maps", "npz", *options)
    assert (result.stdout, result.stderr.endswith("m.npz: maps of 2 examples\n")) == ("", True)
    with np.load(target) as file, attnstore.open(tiny_store) as store:
        assert (file["layers"].tolist(), file["heads"].tolist()) == ([1], [0, 2])
        for example in (1, 4):
            own = store.attention(example, layer=[1], head=[0, 2], level="word")
            np.testing.assert_array_equal(file[f"{example}/weights"], own.weights)


@pytest.mark.parametrize("form", ["npz", "csv", "zarr", "bertviz"])
def test_every_form_takes_every_example(tiny_store: Path, tmp_path: Path, form: str) -> None:
    assert "maps of 7 examples" in good("export", tiny_store, tmp_path / "m", "--maps", form).stderr
    assert isinstance(invoke("export", tiny_store, tmp_path / "m", "--maps", form).exception, BadInput)


def test_export_writes_a_smaller_store(tiny_store: Path, tmp_path: Path) -> None:
    good("export", tiny_store, tmp_path / "s.attn", "--where", "name in ('s1', 's4')", "--layers", "1")
    with attnstore.open(tmp_path / "s.attn") as small, attnstore.open(tiny_store) as store:
        for name in ("s1", "s4"):
            own = store.attention(name, layer=1).weights
            np.testing.assert_array_equal(small.attention(name, layer=1).weights, own)
        assert small.sql("select count(*) as n from examples").to_arrow()["n"].to_pylist() == [2]


def test_compare_pins_each_store(tiny_store: Path, make_store: Any) -> None:
    with attnstore.open(tiny_store) as store:
        pinned = store.snapshot.content_hash
    words = ["compare", "compare/pairs", tiny_store, make_store("b.attn", keep__precision="exact")]
    assert good(*words, "--expect-a", pinned[:8], "--snapshot-b", "1").stdout
    for side, error in (("--expect-a", "0" * 8), ("--expect-b", pinned)):
        assert isinstance(invoke(*words, side, error).exception, Damaged)
    for option, value in (("--snapshot-a", "7"), ("--snapshot-b", "7"), ("--tag-a", "none"), ("--tag-b", "none")):
        assert isinstance(invoke(*words, option, value).exception, NotFound)
