"""The commands that make a store or add to it, as they are called: estimate, ingest, annotate."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput, NoSpace
from tests.cli.running import good, invoke, rows, write_recipe
from tests.conftest import SENTENCES, write_arrays


def test_estimate_counts_what_would_be_stored(corpus: Path) -> None:
    (row,) = rows("estimate", corpus / "tiny.toml")
    with np.load(corpus / "maps.npz") as maps:
        assert row["weights"] == sum(maps[name].size for name in maps.files)
        assert row["longest"] == max(maps[name].shape[2] for name in maps.files)
    assert (row["examples"], row["skipped"], row["segments"]) == (4, 0, 1)


def test_estimate_takes_settings_into_account(corpus: Path) -> None:
    (plain,), (small,) = (
        rows("estimate", corpus / "tiny.toml"),
        rows("estimate", corpus / "tiny.toml", "--set", "keep.maps=none", "--set", "keep.facts=none"),
    )
    assert plain["maps_mb"] > 0
    assert (small["maps_mb"], small["facts_mb"]) == (0, 0)


def test_estimate_ends_with_one_where_the_disk_is_too_small(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    result = invoke("estimate", corpus / "tiny.toml", tmp_path / "deep" / "s.attn", "--format", "json")
    assert result.exit_code == 1
    assert isinstance(result.exception, NoSpace)
    assert json.loads(result.stdout)[0]["examples"] == 4  # the numbers come all the same
    assert not (tmp_path / "deep").exists()


def test_ingest_says_what_it_stored_and_gives_no_data(corpus: Path, tmp_path: Path) -> None:
    result = good("ingest", corpus / "tiny.toml", tmp_path / "s.attn")
    assert result.stdout == ""
    with attnstore.open(tmp_path / "s.attn") as made:
        assert f"4 examples, content {made.snapshot.content_hash[:16]}" in result.stderr


def test_ingest_counts_what_was_skipped(tmp_path: Path) -> None:
    path = write_arrays(tmp_path, SENTENCES[:2])
    path.write_text(path.read_text() + '{"name": "empty", "text": ""}\n')
    result = good("ingest", write_recipe(tmp_path), tmp_path / "s.attn")
    assert "2 examples and 1 skipped" in result.stderr
    assert rows("sql", tmp_path / "s.attn", "select * from skipped") == [
        {"name": "empty", "reason": "its text is empty", "origin": "corpus.jsonl:3"}
    ]


def test_set_replaces_keys_of_the_recipe_and_is_recorded(corpus: Path, tmp_path: Path) -> None:
    place = tmp_path / "s.attn"
    settings = ["keep.precision=exact", "title=2024", "model.revision=1e5", "keep.layers=[1]"]
    good("ingest", corpus / "tiny.toml", place, *(word for setting in settings for word in ("--set", setting)))
    with attnstore.open(place) as made:
        recipe = made.info.recipe
        assert (recipe["keep"]["precision"], recipe["title"], recipe["model"]["revision"]) == ("exact", "2024", "1e5")
        assert made.info.kept.layers == (1,)


def test_a_corpus_may_come_from_standard_input_and_resume(corpus: Path, tmp_path: Path) -> None:
    recipe, place = corpus / "tiny.toml", tmp_path / "s.attn"
    text = (corpus / "corpus.jsonl").read_bytes()
    hashes = []
    for _ in range(2):
        good("ingest", recipe, place, "--set", "corpus.path=-", stdin=text)
        with attnstore.open(place) as made:
            hashes.append(made.snapshot.content_hash)
    assert hashes[0] == hashes[1]
    assert [row["origin"] for row in rows("sql", place, "select origin from examples order by example")] == [
        f"stdin.jsonl:{line}" for line in (1, 2, 3, 4)
    ]


def test_annotate_says_what_it_did_and_what_it_could_not_place(corpus: Path, tmp_path: Path) -> None:
    good("ingest", corpus / "tiny.toml", tmp_path / "s.attn")
    (tmp_path / "labels.csv").write_text("name,text,label\ns0,x,a\nnobody,y,b\n")
    result = good("annotate", tmp_path / "s.attn", "--labels", tmp_path / "labels.csv")
    assert result.stdout == ""
    assert "examples annotated: 1, in the addition 000001-labels" in result.stderr
    assert "entries that match no example: 1 (nobody)" in result.stderr


def test_annotate_adds_nothing_where_one_of_two_files_is_missing(corpus: Path, tmp_path: Path) -> None:
    good("ingest", corpus / "tiny.toml", tmp_path / "s.attn")
    words = ("--words", corpus / "corpus.jsonl")
    result = invoke("annotate", tmp_path / "s.attn", *words, "--labels", tmp_path / "none.csv")
    assert isinstance(result.exception, BadInput)
    assert not (tmp_path / "s.attn" / "additions").exists()


def test_annotate_gives_words_before_the_mentions_and_links_that_count_them(corpus: Path, tmp_path: Path) -> None:
    good("ingest", corpus / "tiny.toml", tmp_path / "s.attn")
    spans = {"source_start_word": 1, "source_end_word": 2, "target_start_word": 0, "target_end_word": 1}
    entries = {
        "words": {"name": "s3", "text": "rain fell", "words": ["rain fell"]},
        "mentions": {"name": "s3", "mentions": [{"cluster": "it", "start_word": 0, "end_word": 1}]},
        "links": {"name": "s0", "links": [{"relation": "r", **spans, "core": False}]},
    }
    files: list[object] = []
    for name in reversed(entries):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(entries[name]))
        files += [f"--{name}", path]
    result = good("annotate", tmp_path / "s.attn", *files)
    added = [line.rpartition(" ")[2] for line in result.stderr.splitlines()]
    assert added == ["000001-words", "000002-mentions", "000003-links"]
    found = rows("sql", tmp_path / "s.attn", "select cluster, end_word from mentions")
    assert found == [{"cluster": "it", "end_word": 1}]
    (link,) = rows("sql", tmp_path / "s.attn", "select example, source_start_word, core from links")
    assert link == {"example": 0, "source_start_word": 1, "core": False}


def test_annotate_adds_nothing_where_links_have_another_ending(corpus: Path, tmp_path: Path) -> None:
    good("ingest", corpus / "tiny.toml", tmp_path / "s.attn")
    (tmp_path / "links.conllu").write_text("")
    words = ("--words", corpus / "corpus.jsonl")
    result = invoke("annotate", tmp_path / "s.attn", *words, "--links", tmp_path / "links.conllu")
    assert isinstance(result.exception, BadInput)
    assert "expected one of .jsonl" in str(result.exception)
    assert not (tmp_path / "s.attn" / "additions").exists()
