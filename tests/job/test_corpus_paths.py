"""The files of a corpus are found as seen from the recipe, and standard input is a file like any other."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import BadInput
from attnstore.job.prepare import corpus_paths
from attnstore.job.recipe import Recipe


def recipe(folder: Path, path: Any, kind: str = "lines") -> Recipe:
    return Recipe.build({"corpus": {"kind": kind, "path": path}, "model": {"name": "m"}}, folder=folder)


def found(folder: Path, path: Any) -> list[str]:
    return [place.relative_to(folder).as_posix() for place in corpus_paths(recipe(folder, path))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "deep/c.txt", "deep/er/d.txt", "e.csv", "odd[1].txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("x\n")
    return tmp_path


def test_patterns_are_resolved_in_order_from_the_recipes_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(folder, "?.txt") == ["a.txt", "b.txt"]
    assert found(folder, ["e.csv", "?.txt"]) == ["e.csv", "a.txt", "b.txt"]
    assert found(folder, "deep/**/*.txt") == ["deep/c.txt", "deep/er/d.txt"]
    monkeypatch.chdir(folder / "deep")
    assert found(folder, "?.txt") == ["a.txt", "b.txt"]  # not from where one stands


def test_a_full_path_and_one_that_goes_up_are_taken(folder: Path) -> None:
    assert corpus_paths(recipe(Path("elsewhere"), str(folder / "?.txt"))) == (folder / "a.txt", folder / "b.txt")
    up = corpus_paths(recipe(folder / "deep", "../?.txt"))
    assert [path.resolve() for path in up] == [folder.resolve() / "a.txt", folder.resolve() / "b.txt"]


def test_letters_of_patterns_in_names_stand_for_themselves(folder: Path) -> None:
    assert found(folder, "odd[1].txt") == ["odd[1].txt"]
    (folder / "set[1]").mkdir()
    (folder / "set[1]" / "a.txt").write_text("x\n")
    assert found(folder / "set[1]", "*.txt") == ["a.txt"]


def test_a_pattern_without_a_match_says_from_where_it_was_read(folder: Path) -> None:
    with pytest.raises(
        BadInput, match=r"no file matches none/\*\.txt; expected files, as seen from the recipe"
    ) as caught:
        corpus_paths(recipe(folder, "none/*.txt"))
    assert str(folder) in str(caught.value)
    assert "--set corpus.path=" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        ("lines", b"one\ntwo\n", "stdin.txt"),
        ("pairs", b"one\n", "stdin.txt"),
        ("conllu", b"1\ta\n", "stdin.conllu"),
        ("jsonl", b"{}\n", "stdin.jsonl"),
        ("tokens", b"{}\n", "stdin.jsonl"),
        ("arrays", b"{}\n", "stdin.jsonl"),
        ("table", b"text,label\na,b\n", "stdin.csv"),
        ("table", b"text\tlabel\na\tb\n", "stdin.tsv"),
        ("table", b"PAR1\x00\n", "stdin.parquet"),
        ("lines", b"", "stdin.txt"),
    ],
)
def test_standard_input_becomes_a_file_that_is_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, text: bytes, name: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    (path,) = corpus_paths(recipe(tmp_path, "-", kind))
    assert path.name == name  # the same name at every run: examples are named after it
    assert path.read_bytes() == path.read_bytes() == text
