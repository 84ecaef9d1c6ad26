"""What the pages say is true: their code runs, their commands are taken, and nothing that exists is left out."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import attnstore
from attnstore.catalogue.catalogue import questions
from attnstore.cli import COMMANDS, group
from attnstore.format.tables import TABLES
from attnstore.format.verify import verify
from attnstore.job.recipe import Recipe, keys
from attnstore.job.recipe_keys import CHOICES
from attnstore.job.run import ingest
from attnstore.text.corpus import Corpus
from attnstore.text.corpus import read as read_corpus
from attnstore.text.example import Example
from attnstore.text.vocabulary import Vocabulary
from tests.cli.running import good
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.pages import FENCE, PAGES, ROOT, blocks, text_of

# --- what is generated


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """docs/make.py as a module."""
    spec = importlib.util.spec_from_file_location("docs_make", ROOT / "docs/make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "format.md", "questions.md"])
def test_a_generated_page_is_current(make: ModuleType, name: str) -> None:
    found = {path.name: text for path, text in make.generated().items()}
    assert text_of(ROOT / "docs" / name) == found[name], "run `make docs`"


def test_a_page_that_is_stale_is_noticed(
    make: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in make.generated():
        (tmp_path / path.name).write_text(text_of(path), encoding="utf-8")
    monkeypatch.setattr(make, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["make.py", "--check"])
    assert make.main() == 0
    (tmp_path / "cli.md").write_text("old")
    (tmp_path / "format.md").write_text(text_of(tmp_path / "format.md").replace("largest weight of the row", "old"))
    assert make.main() == 1
    assert capsys.readouterr().out.count("is stale") == 2
    monkeypatch.setattr(sys, "argv", ["make.py"])
    assert make.main() == 0
    assert text_of(tmp_path / "cli.md") == text_of(ROOT / "docs/cli.md")


def test_every_command_option_table_column_and_question_is_on_its_page() -> None:
    cli, form, catalogue = (text_of(ROOT / "docs" / name) for name in ("cli.md", "format.md", "questions.md"))
    for name in COMMANDS:
        section = cli.partition(f"## attnstore {name}\n")[2].partition("\n## ")[0]
        command = group.get_command(click.Context(group), name)
        assert command is not None
        for param in command.params:
            assert any(option in section for option in param.opts) or isinstance(param, click.Argument), (name, param)
    for table, schema in TABLES.items():
        section = form.partition(f"### {table}\n")[2].partition("\n### ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == schema.names, table
    assert re.findall(r"^### (\w+/\w+)$", catalogue, re.MULTILINE) == list(questions())


# --- recipes


def rows_of_keys(page: str) -> dict[str, list[str]]:
    """The rows of the table of keys: key -> values, default, meaning."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines()]
    found: dict[str, list[str]] = {}
    for row in rows:
        if re.fullmatch(r"`(title|\w+\.\w+)`", row[0]):
            found.setdefault(row[0].strip("`"), row[1:])
    return found


def test_every_key_of_a_recipe_is_listed_with_its_default() -> None:
    found = rows_of_keys(text_of(ROOT / "docs/recipes.md"))
    for key, _, default in keys():
        value = list(default) if isinstance(default, tuple) else default
        expected = "" if default is MISSING else f"`{json.dumps(value)}`"
        assert found[key][1] == expected, key


def test_every_value_that_a_key_may_have_is_listed() -> None:
    found = rows_of_keys(text_of(ROOT / "docs/recipes.md"))
    for key, choices in CHOICES.items():
        assert re.findall(r"`(\w+)`", found[key][0]) == list(choices), key


def test_every_shipped_recipe_parses() -> None:
    paths = sorted((ROOT / "ingest").glob("*.toml"))
    assert len(paths) >= 5
    for path in paths:
        assert Recipe.read(path).title, path


RECIPE_BLOCKS = [
    pytest.param(block, id=f"{path.relative_to(ROOT).as_posix()}: {block.strip().splitlines()[0]}")
    for path in PAGES
    for block in blocks(path, "toml")
]


@pytest.mark.parametrize("block", RECIPE_BLOCKS)
def test_a_recipe_on_a_page_has_no_unknown_key(block: str) -> None:
    found = tomllib.loads(block)
    # A page may show a part of a recipe: what every recipe must have is added.
    whole: dict[str, Any] = {"corpus": {"kind": "lines", "path": "x"}, "model": {"name": "m"}}
    for name, value in found.items():
        whole[name] = {**whole.get(name, {}), **value} if isinstance(value, dict) else value
    if whole.get("words", {}).get("feed") == "joined_words":
        whole["words"].setdefault("source", "gold")
    if whole["corpus"].get("unit") == "window":
        whole["corpus"]["kind"] = "conllu"
    if whole["corpus"]["kind"] == "repeated_random":
        del whole["corpus"]["path"]
    Recipe.build(whole)


def test_the_maps_made_on_the_page_are_a_corpus(tmp_path: Path) -> None:
    section = text_of(ROOT / "docs/recipes.md").partition("`own_maps.py`:")[2]
    (script,) = [code for language, code in FENCE.findall(section)[:1] if language == "python"]
    (recipe,) = [code for language, code in FENCE.findall(section)[1:2] if language == "toml"]
    (tmp_path / "own.toml").write_text(recipe)
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=60)
    with ingest(tmp_path / "own.toml", tmp_path / "own.attn") as store:
        assert [row["name"] for row in store.sql("select name from examples order by example")] == ["rain", "snow"]
    assert verify(tmp_path / "own.attn", deep=True) == []


def test_the_reactions_split_on_the_page_are_a_corpus(tmp_path: Path) -> None:
    section = text_of(ROOT / "docs/recipes.md").partition("`split_reactions.py`:")[2]
    (_, script), (_, reactions) = FENCE.findall(section)[:2]
    # Brackets, two-letter symbols, two digits of a ring, and an arrow are one symbol each.
    (tmp_path / "reactions.txt").write_text(reactions + "[Na+].C[C@@H](Cl)CBr>>C%12=C#C\\%12\n")
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=60)
    lines = [json.loads(line) for line in text_of(tmp_path / "reactions.jsonl").splitlines()]
    expected = "[Na+] . C [C@@H] ( Cl ) C Br >> C %12 = C # C \\ %12"
    assert lines[-1]["tokens"] == expected.split(" ")
    vocabulary = Vocabulary({symbol: number for number, symbol in enumerate({s for x in lines for s in x["tokens"]})})
    found = list(read_corpus(Corpus("tokens", (tmp_path / "reactions.jsonl",), vocabulary=vocabulary)))
    assert [item.text for item in found if isinstance(item, Example)] == text_of(tmp_path / "reactions.txt").split()
    (tmp_path / "reactions.txt").write_text("Xx>>C\n")
    refused = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert "not wholly split: Xx>>C" in refused.stderr


# --- commands and code on the pages


def commands(path: Path) -> Iterator[list[str]]:
    """The words of every `attnstore …` in the shell blocks of a page; a quotation may go over several lines."""
    for block in blocks(path, "sh", "console", ""):
        lines = iter(block.splitlines())
        for line in lines:
            line = line.removeprefix("$ ")
            if not line.startswith("attnstore "):
                continue
            while True:
                if line.endswith("\\"):
                    line = line[:-1] + next(lines)
                    continue
                try:
                    words = shlex.split(line, comments=True)
                    break
                except ValueError:
                    line += "\n" + next(lines)
            # What a pipe or a redirection does is the shell's matter.
            end = next((place for place, word in enumerate(words) if word in ("|", ">", "<", "&&", "||")), None)
            yield words[1:end]


SHOWN = [(path.relative_to(ROOT).as_posix(), words) for path in PAGES for words in commands(path)]


def test_the_pages_show_commands() -> None:
    assert len(SHOWN) > 20
    assert {"estimate", "ingest", "ask", "sql", "annotate"} <= {words[0] for _, words in SHOWN}


@pytest.mark.parametrize(("page", "words"), SHOWN, ids=[f"{page}: {' '.join(words)[:60]}" for page, words in SHOWN])
def test_a_command_on_a_page_is_taken(page: str, words: list[str], tmp_path: Path) -> None:
    command = group.get_command(click.Context(group), words[0])
    assert command is not None, words
    try:
        command.make_context(words[0], words[1:])
    except click.exceptions.Exit:
        assert "--help" in words  # or the like, which ends at once


def test_every_command_that_is_named_anywhere_exists() -> None:
    """In messages, questions and pages: a remedy that names a command must not lead nowhere."""
    files = [*PAGES, ROOT / "CHANGELOG.md", *(ROOT / "attnstore").rglob("*.py"), *(ROOT / "queries").rglob("*.sql")]
    named = re.compile(r"(?:`|: |^\s*\$ )attnstore ([a-z]+)")
    unknown = {
        (path.relative_to(ROOT).as_posix(), word)
        for path in files
        for line in text_of(path).splitlines()
        for word in named.findall(line)
        if word not in COMMANDS and word not in ("is", "are", "can")
    }
    assert unknown == set()


@pytest.fixture
def quickstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in the place of the demonstration's, with as many layers and heads as the pages speak of."""
    monkeypatch.chdir(tmp_path)
    corpus = write_arrays(tmp_path / "c", SENTENCES, layers=6, heads=12)
    ingest(arrays_recipe(corpus), tmp_path / "quickstart.attn").close()
    return tmp_path / "quickstart.attn"


RUN = [(path.name, code) for path in PAGES for code in blocks(path, "python") if code.startswith("# runs")]


def test_some_python_on_the_pages_runs() -> None:
    assert "README.md" in {name for name, _ in RUN}


@pytest.mark.parametrize(("name", "code"), RUN, ids=[name for name, _ in RUN])
def test_python_that_is_marked_so_runs(quickstart: Path, name: str, code: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=quickstart.parent, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


def test_the_card_of_a_store_says_how_to_open_it(tiny_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_store)
    found = blocks(tiny_store / "README.md", "python")
    assert len(found) == 4  # zarr, duckdb, pandas, attnstore
    script = "\n".join(found) + "\nassert store.snapshot.number == 1"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tiny_store, timeout=60)
    for line in re.findall(r"`attnstore ([^`]+)`", text_of(tiny_store / "README.md")):
        assert good(*shlex.split(line)).output


def test_every_link_to_a_file_leads_there() -> None:
    for path in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text_of(path)):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {attnstore.__version__} " in text_of(ROOT / "CHANGELOG.md")
