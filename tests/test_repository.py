"""This file tests what no file of the repository may hold, and the names and lengths of modules."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "attnstore"
# Made by tools, ignored by git.
MADE = {".git", ".venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "dist", "build"}

# Put together from pieces, so that this file passes its own test.
HOSTS = [".".join(pieces) for pieces in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))]
FOLDERS = "work|tmp|root|home|opt|farm|mnt"
FORBIDDEN = re.compile(rf"(?<![\w.~$}}-])/(?:{FOLDERS})/\w|{'|'.join(map(re.escape, HOSTS))}".encode())


def files(root: Path) -> Iterator[Path]:
    """Every file under `root` that belongs to the repository, not to a tool."""
    for folder, below, names in os.walk(root):
        kept = [name for name in below if name not in MADE and not name.endswith((".attn", ".egg-info"))]
        # The golden stores belong to the repository although they are stores.
        kept += [name for name in below if name.endswith(".attn") and "golden" in Path(folder).parts]
        below[:] = sorted(kept)
        yield from (Path(folder, name) for name in sorted(names))


def mentions(root: Path) -> list[str]:
    """File, line and text of every machine path and registry host under `root`."""
    found = []
    for path in files(root):
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if hit := FORBIDDEN.search(line):
                found.append(f"{path.relative_to(root).as_posix()}:{number}: {hit.group().decode()}")
    return found


def modules() -> list[Path]:
    return [path for path in sorted(PACKAGE.rglob("*.py")) if "_shipped" not in path.parts]


def test_no_file_names_a_path_of_one_machine_or_a_package_registry() -> None:
    assert mentions(ROOT) == []


@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("see /" + "work/main/x.py", "/" + "work/m"),
        ('open("/' + 'tmp/store.attn")', "/" + "tmp/s"),
        ("from https://" + "pypi." + "org/simple", "pypi." + "org"),
        ("registry." + "npmjs." + "org", "npmjs." + "org"),
    ],
)
def test_a_planted_mention_is_caught(tmp_path: Path, text: str, hit: str) -> None:
    (tmp_path / "note.md").write_text(f"first line\n{text}\n")
    assert mentions(tmp_path) == [f"note.md:2: {hit}"]


@pytest.mark.parametrize("text", ["docs/" + "work/flow.md", "~/" + "work/x", "https://a.net/home/page", "a/tmp/b"])
def test_a_relative_path_or_an_address_is_no_mention(tmp_path: Path, text: str) -> None:
    (tmp_path / "note.md").write_text(text)
    assert mentions(tmp_path) == []


def test_the_whole_repository_is_searched() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in files(ROOT)}
    assert {"README.md", "Makefile", ".ci/run", "attnstore/errors.py", "tests/test_repository.py"} <= found
    assert not any(name.startswith((".git/", ".venv/")) for name in found)


def test_no_module_is_named_like_one_of_the_standard_library() -> None:
    # A command is named for what users type, and only ever imported as attnstore.cli.NAME.
    named = [path for path in modules() if path.parent.name != "cli"]
    names = {path.stem for path in named} | {path.parent.name for path in named}
    assert names & (set(sys.stdlib_module_names) - {"__future__"}) == set()


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert {path.stem for path in modules()} & {
        "utils",
        "util",
        "helpers",
        "common",
        "base",
        "manager",
        "misc",
    } == set()


def test_no_module_is_longer_than_350_lines() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): path.read_bytes().count(b"\n") for path in modules()}
    assert lengths
    assert {name: n for name, n in lengths.items() if n > 350} == {}
