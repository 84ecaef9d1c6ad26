"""Tests of the README of a store: what the Hub reads of it, what it lets through, and that its programs run."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.share.card import MADE, card, licence_name, write_card
from attnstore.share.escaping import LONGEST, markdown, one_line
from attnstore.share.escaping import yaml as quoted
from attnstore.store.contents import Contents, read_contents
from tests.cli.running import good, invoke
from tests.conftest import arrays_recipe, random_maps
from tests.pages import FENCE

HOSTILE = (
    '"]: |\n  license: mit\n---\n# Other\n<script>alert(1)</script> [x](javascript:alert(1)) ![](http://e.example/p)'
    " | `\u202eab` {{x}} *&a !!python/object:os.system 'q' \\ \x85\u2028 ```python\nimport os\n```"
)


def front_matter(text: str) -> dict[str, Any]:
    """What the Hub reads."""
    _, head, _ = text.split("---\n", 2)
    value = yaml.safe_load(head)
    assert isinstance(value, dict)
    return value


def named(contents: Contents, **keys: Any) -> Contents:
    """The same store with other texts in its store.json."""
    corpus = {**contents.info.corpus, "licence": keys.pop("licence", "")}
    info = replace(contents.info, corpus=corpus, **keys)
    return Contents(contents.root, info, contents.snapshot)


def programs(text: str) -> list[str]:
    return [code for language, code in FENCE.findall(text) if language == "python"]


ALONE = """
import contextlib, io, json, sys
told = []
for code in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, code, "exec"), {"__name__": "__main__"})
    told.append(out.getvalue())
print(json.dumps(told))
"""


def run(text: str, folder: Path) -> list[str]:
    """What each program of a card prints, in the folder of a store; in one process, as loading takes longest."""
    command, given = [sys.executable, "-W", "error::SyntaxWarning", "-c", ALONE], json.dumps(programs(text))
    found = subprocess.run(command, cwd=folder, input=given, capture_output=True, text=True, check=False, timeout=100)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert isinstance(told, list)
    return told


def test_the_hub_reads_what_the_store_is(tiny_store: Path) -> None:
    found = front_matter(card(read_contents(tiny_store)))
    assert found["pretty_name"] == "tiny"
    assert found["license"] == "unknown"
    assert found["size_categories"] == ["n<1K"]
    tables = {one["config_name"]: one["data_files"] for one in found["configs"]}
    assert tables["tokens"] == ["segments/000000/tokens.parquet"]
    assert [one["config_name"] for one in found["configs"] if one.get("default")] == ["examples"]
    for files in tables.values():
        assert all((tiny_store / file).is_file() for file in files)


def test_the_card_says_where_the_maps_are_from_and_what_pins_them(tiny_store: Path) -> None:
    contents = read_contents(tiny_store)
    text = card(contents)
    assert f"| content hash | {contents.snapshot.content_hash} |" in text
    assert "| heads | encoder 2 layers x 3 heads |" in text
    assert "off by 4.9e-4 at most" in text
    assert "| licence of the texts | not stated" in text
    assert f"--expect {contents.snapshot.content_hash[:16]}" in text
    assert (tiny_store / "README.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("stated", "name"),
    [("CC BY-NC-SA 4.0", "cc-by-nc-sa-4.0"), ("MIT", "mit"), ("", "unknown"), ("as stated: there", "other")],
)
def test_a_licence_has_the_name_that_the_hub_knows(tiny_store: Path, stated: str, name: str) -> None:
    contents = named(read_contents(tiny_store), licence=stated)
    assert licence_name(contents) == name
    found = front_matter(card(contents))
    assert found["license"] == name
    assert found.get("license_name") == ("as-stated-there" if name == "other" else None)


def test_hostile_texts_stay_texts(tiny_store: Path) -> None:
    contents = read_contents(tiny_store)
    plain = front_matter(card(contents))
    model = {**contents.info.model, "name": HOSTILE, "revision": HOSTILE, "class": HOSTILE}
    text = card(named(contents, licence=HOSTILE, title=HOSTILE, model=model))
    found = front_matter(text)
    assert found["pretty_name"] == one_line(HOSTILE)
    assert found["license"] == "other"
    assert set(found) == {*plain, "license_name"}
    assert programs(text) == programs(card(contents))
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text.split("---\n", 2)[2])
    kinds = {one.type for token in shown for one in (token, *(token.children or ()))}
    headings = [after.content for token, after in itertools.pairwise(shown) if token.type == "heading_open"]
    assert len(headings) == 4
    assert not {"html_inline", "image"} & kinds
    links = [one.attrs["href"] for token in shown for one in token.children or () if one.type == "link_open"]
    assert links == ["https://zarr.dev", "https://duckdb.org", "https://pandas.pydata.org"]
    assert [token.content.strip() for token in shown if token.type == "html_block"] == [MADE]


@given(st.text())
def test_any_text_is_one_quoted_string_of_yaml(text: str) -> None:
    assert yaml.safe_load(f"key: {quoted(text)}") == {"key": one_line(text)}


@given(st.text())
def test_any_text_is_shown_as_it_is_by_markdown(text: str) -> None:
    (_, inline, *_) = MarkdownIt("gfm-like", {"linkify": False}).parse(f"x {markdown(text)}")
    assert {one.type for one in inline.children or ()} <= {"text", "text_special"}
    assert "".join(one.content for one in inline.children or ()) == f"x {one_line(text)}".rstrip()


def test_a_long_text_is_cut() -> None:
    assert len(one_line("a" * 10**6)) == LONGEST


def test_the_programs_of_the_card_run(tiny_store: Path) -> None:
    text = card(read_contents(tiny_store))
    found = run(text, tiny_store)
    assert len(found) == 4
    assert "(2, 3, " in found[0]
    assert "largest_weight" in found[1]
    assert "[CLS]" in found[2]
    assert all(len(code.splitlines()) <= 6 for code in programs(text))


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [
        {"keep__maps": "topk:2"},
        {"keep__precision": "compact"},
        {"keep__precision": "compact", "keep__maps": "topk:2"},
        {"keep__maps": "none"},
        {"keep__facts": "none"},
        {"keep__layers": [1]},
    ],
    ids=str,
)
def test_the_programs_run_whatever_was_kept(make_store: Callable[..., Path], keys: dict[str, Any]) -> None:
    store = make_store(**keys)
    text = card(read_contents(store))
    assert len(run(text, store)) == 3 + (keys.get("keep__maps") != "none")
    assert ("largest weights of each row, which hold" in text) == ("topk" in str(keys))
    assert ("layers 1" in text) == ("keep__layers" in keys)


@pytest.mark.slow
def test_the_programs_run_with_a_decoder_and_many_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 1)
    rng = np.random.default_rng(0)
    maps = {f"{n}/decoder": random_maps(rng, 2, 2, 3, 3, causal=True) for n in "ab"}
    maps |= {f"{n}/cross": random_maps(rng, 2, 2, 3, 2) for n in "ab"}
    maps |= {f"{n}/encoder": random_maps(rng, 2, 2, 2, 2) for n in "ab"}
    np.savez(tmp_path / "m.npz", **maps)
    line = '{"name": "%s", "text": "xx", "tokens": ["x", "x"], "target": "yyy", "target_tokens": ["y", "y", "y"], %s}'
    (tmp_path / "c.jsonl").write_text("\n".join(line % (n, '"maps": "m.npz"') for n in "ab"))
    ingest(arrays_recipe(tmp_path / "c.jsonl"), tmp_path / "s").close()
    text = card(read_contents(tmp_path / "s"))
    assert run(text, tmp_path / "s")[0].startswith("a (2, 2, 2, 2)")
    tables = {one["config_name"]: one["data_files"] for one in front_matter(text)["configs"]}
    assert tables["tokens"] == ["segments/*/tokens.parquet"]


@pytest.mark.slow
def test_a_table_that_was_replaced_is_not_offered(make_store: Callable[..., Path]) -> None:
    store = make_store()
    addition = refresh(store, "head_facts", {"eps": "0.01"})
    text = (store / "README.md").read_text(encoding="utf-8")
    tables = {one["config_name"]: one["data_files"] for one in front_matter(text)["configs"]}
    assert tables["head_facts"] == [f"additions/{addition}/head_facts.parquet"]
    assert "snapshot 2" in text
    assert "| added later | head\\_facts |" in text


def test_a_readme_that_somebody_wrote_stays(make_store: Callable[..., Path]) -> None:
    store = make_store()
    (store / "README.md").write_text("Mine.\n")
    assert not write_card(store)
    assert "stays" in good("card", store, "--write").stderr
    assert (store / "README.md").read_text() == "Mine.\n"
    (store / "README.md").unlink()
    assert write_card(store)
    assert not list(store.glob(".staging-*"))


def test_the_command_prints_or_writes(make_store: Callable[..., Path], tmp_path: Path) -> None:
    store = make_store()
    text = card(read_contents(store))
    assert good("card", store).stdout == text
    good("card", store, "-o", tmp_path / "card.md")
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == text
    (store / "README.md").unlink()
    good("card", store, "--write")
    assert (store / "README.md").read_text(encoding="utf-8") == text
    assert (store / "croissant.json").read_text(encoding="utf-8") == good("card", store, "--croissant").stdout
    assert invoke("card", store, "--write", "--croissant").exit_code == 2
    assert invoke("card", store, "--expect", "0" * 8).exit_code == 1


def test_the_model_of_a_folder_is_told_by_its_name(tiny_store: Path) -> None:
    contents = read_contents(tiny_store)
    place = os.sep + os.path.join("somebody", "models", "own")
    text = card(named(contents, model={**contents.info.model, "name": place}))
    assert "somebody" not in text
    assert "| model | own |" in text
