"""This file reads docs/papers.md as what it claims, asks the stores the same, and writes what they answer.

    python -m tests.model.papers --stores FOLDER [--data FOLDER] [--only TEXT] [--write]

Stores that FOLDER lacks are made first, by the commands of the page, from the corpora in --data (default: shared/data
beside the checkout). Without --write every cell that differs is printed.

A row of a table is `where | what | command | published | here`. The command cell holds one command and, after
<br>, what is read off its answer, in italics, as tests/model/readings.py says: readings parted by semicolons. A row
of Table 1 of Clark et al. is `relation | n | called here | published | here`; its command is the last one above.
"""

import argparse
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from attnstore.cli import group
from attnstore.cli.options import parameters
from attnstore.store.comparison import compare
from attnstore.store.store import open as open_store
from tests.model.readings import Row, agree, cell, of_relation

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers.md"


@dataclass(frozen=True)
class Line:
    """One row of a table of the page: `section` above it, its five `cells`, and its place, from 0, in the page.

    `relations` is the command above a table of relations, None in all others.
    """

    section: str
    cells: tuple[str, ...]
    number: int
    relations: str | None = None

    @property
    def command(self) -> str | None:
        """The command as it stands, None where the row has none."""
        if self.relations is not None:
            return self.relations if self.cells[2] else None
        found = re.match(r"`(attnstore [^`]+)`", self.cells[2])
        return found and found[1].replace("\\|", "|")

    @property
    def readings(self) -> list[str]:
        """What is read off the answer; empty for pictures."""
        if self.relations is not None:
            return [self.cells[2].strip("`")] if self.cells[2] else []
        found = re.search(r"<br>\*(.+)\*$", self.cells[2])
        return found[1].split("; ") if found else []

    @property
    def here(self) -> str:
        """What the page says that the stores answer."""
        return self.cells[4]


def lines(page: str) -> list[Line]:
    """Every row of the tables of papers: those whose last column is headed `here`."""
    found, section, inside, above, of = [], "", False, "", None
    for number, text in enumerate(page.splitlines()):
        if text.startswith("## "):
            section = text[3:]
        if text.startswith("attnstore ask"):
            above = text
        cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", text.strip())[1:-1])
        if not cells:
            inside = False
        elif cells[-1] == "here":
            inside, of = True, above if cells[2] == "called here" else None
        elif inside and not set("".join(cells)) <= set("-: "):
            found.append(Line(section, cells, number, of))
    return found


def recipes(page: str) -> dict[str, list[str]]:
    """The words of the `attnstore ingest` command of each store, by the store's name."""
    found = {}
    for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for text in block.replace("\\\n", " ").splitlines():
            words = shlex.split(text, comments=True)
            if words[:2] == ["attnstore", "ingest"]:
                found[words[3]] = words[1:]
    return found


@dataclass
class Stores:
    """The stores of the page in a folder, made by its commands as they are needed. Close it, or use `with`."""

    folder: Path
    data: Path
    page: str
    opened: dict[tuple[str, ...], Any] = field(default_factory=dict)
    answers: dict[str, list[Row]] = field(default_factory=dict)

    def store(self, *names: str) -> Any:
        """One open store, or two that are compared."""
        for name in names:
            if not (self.folder / name).exists():
                self._lay_out()
                with contextlib.chdir(self.folder):
                    words = recipes(self.page)[name]
                    group.main([*words], standalone_mode=False)
        if names not in self.opened:
            places = [self.folder / name for name in names]
            self.opened[names] = open_store(places[0]) if len(names) == 1 else compare(places[0], places[1])
        return self.opened[names]

    def _lay_out(self) -> None:
        """The recipes, and the corpora where the page says that they lie."""
        corpora = self.folder / "corpora"
        if corpora.exists():
            return
        shutil.copytree(ROOT / "ingest", self.folder / "ingest", dirs_exist_ok=True)
        shutil.copytree(self.data, corpora)
        (code,) = re.findall(
            r"`split_reactions.py`:\n\n```python\n(.*?)^```$",
            (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        )
        with contextlib.chdir(corpora / "reactions"):
            exec(compile(code, "split_reactions.py", "exec"), {})

    def answer(self, command: str) -> list[Row]:
        """The rows of the answer to `attnstore ask …` or `attnstore compare …`, as the command line would ask."""
        if command not in self.answers:
            name, given = parsed(command)
            if name == "export":
                self.answers[command] = self._probed(command, str(given["store"]))
                return self.answers[command]
            stores = (given["store"],) if name == "ask" else (given["a"], given["b"])
            opened = self.store(*map(str, stores))
            found = opened.ask(given["question"], where=given["where"], **parameters(given["params"]))
            self.answers[command] = list(found)
        return self.answers[command]

    def _probed(self, command: str, store: str) -> list[Row]:
        """What docs/probe.py prints of an export: uas by name. Two places: training sums in another order elsewhere."""
        self.store(store)
        with contextlib.chdir(self.folder):
            words = shlex.split(command)[1:]
            file = Path(words[2])
            file.unlink(missing_ok=True)  # an export replaces nothing
            group.main(words, standalone_mode=False)
            script = [sys.executable, str(ROOT / "docs" / "probe.py"), str(file)]
            out = subprocess.run(script, capture_output=True, text=True, check=True).stdout
        (n,) = re.findall(r"UAS on (\d+) words", out)
        found = re.findall(r"^  (\d\.\d+)  (.+)$", out, re.MULTILINE)
        return [{"name": name, "uas": f"{float(uas):.2f}", "n": int(n)} for uas, name in found]

    def __enter__(self) -> "Stores":
        return self

    def __exit__(self, *error: object) -> None:
        for store in self.opened.values():
            store.close()
        self.opened.clear()


def parsed(command: str) -> tuple[str, dict[str, Any]]:
    """The name of a command and what click makes of its words. A click.UsageError where it is not taken."""
    _, name, *words = shlex.split(command)
    found = group.get_command(click.Context(group), name)
    assert found is not None, command
    return name, found.make_context(name, words).params


def answered(line: Line, stores: Stores) -> str:
    """What `here` should say."""
    assert line.command
    rows = stores.answer(line.command)
    return cell(rows, line.readings) if line.relations is None else of_relation(rows, *line.readings)


def checked(page: str) -> Iterator[Line]:
    """The rows that state a value."""
    return (line for line in lines(page) if line.command and line.readings)


def main() -> int:
    """Print the cells that differ, or write them; exit status 1 where some did."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--stores", type=Path, required=True)
    command.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    command.add_argument("--write", action="store_true")
    command.add_argument("--only", default="", help="rows whose command contains this")
    given = command.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    page = PAGE.read_text(encoding="utf-8")
    text = page.splitlines()
    differ = 0
    with Stores(given.stores.resolve(), given.data.resolve(), page) as stores:
        for line in checked(page):
            assert line.command
            if given.only not in line.command:
                continue
            try:
                found = answered(line, stores)
            except Exception as error:
                print(f"{line.command}: {type(error).__name__}: {error}", flush=True)
                differ += 1
                continue
            if not agree(line.here, found):
                print(f"{line.cells[0]}: {line.command} {line.readings}\n  {line.here or '-'} -> {found}", flush=True)
                differ += 1
                text[line.number] = f"| {' | '.join((*line.cells[:4], found))} |"
    if given.write:
        PAGE.write_text("\n".join(text) + "\n", encoding="utf-8")
    return int(bool(differ) and not given.write)


if __name__ == "__main__":
    sys.exit(main())
