"""This file finds questions and views by name and binds a question's parameters to what a caller gave."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import duckdb

from attnstore.catalogue.declared import parse_returns
from attnstore.catalogue.header import split
from attnstore.catalogue.question import REQUIRED, Column, Param, Question, load, statement_parameters
from attnstore.catalogue.values import convert, is_null
from attnstore.errors import BadInput, BadQuestion, NotFound
from attnstore.paths import shipped

VIEWS = "views"


class Questions(Mapping[str, Question]):
    """The questions of a folder by name; the names are known at once, a file is read when it is asked for."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise NotFound("listing the questions", f"{folder} is no folder", "a folder of .sql files")
        self.folder = folder
        places = {path: path.relative_to(folder) for path in sorted(folder.rglob("*.sql"))}
        self._paths = {
            place.with_suffix("").as_posix(): path
            for path, place in places.items()
            if place.parts[0] != VIEWS and not any(part.startswith(".") for part in place.parts)
        }
        self._loaded: dict[str, tuple[int, Question]] = {}

    def __getitem__(self, name: str) -> Question:
        """The question of that name; raises NotFound with the nearest names, or BadQuestion."""
        if name not in self._paths:
            raise NotFound(
                f"looking for the question {name!r}",
                "there is none of that name",
                _or(nearest(name, self._paths)) or "one of those that ship, or a path that ends in .sql",
                "`attnstore questions` lists them all",
            )
        path = self._paths[name]
        changed = path.stat().st_mtime_ns if path.is_file() else -1
        if name not in self._loaded or self._loaded[name][0] != changed:
            self._loaded[name] = changed, load(path, name)
        return self._loaded[name][1]

    def __contains__(self, name: object) -> bool:
        return name in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@dataclass(frozen=True, slots=True)
class View:
    """One view of the shared vocabulary: `create view name as sql`."""

    name: str
    sql: str
    help: str
    returns: tuple[Column, ...] = ()


def questions(folder: Path | None = None) -> Questions:
    """The questions of a folder, or those that ship, by name: the path below the folder without its suffix."""
    return _shipped() if folder is None else Questions(folder)


@cache  # listing the folder and reading a question took a third of what a small question takes
def _shipped() -> Questions:
    return Questions(shipped("queries"))


def find(name: str) -> Question:
    """The shipped question of that name, or the caller's own file where the name ends in .sql.

    Raises NotFound, naming the nearest, and BadQuestion with file and line.
    """
    if not name.endswith(".sql"):
        return questions()[name]
    path = Path(name)
    if not path.is_file():
        near = nearest(name.removesuffix(".sql"), questions())
        raise NotFound(
            f"looking for the question {name!r}",
            "there is no such file",
            f"a path to a .sql file{', or ' + _or(near) if near else ''}",
            "`attnstore questions` lists those that ship",
        )
    return load(path, path.stem, own=True)


def views(folder: Path | None = None) -> tuple[View, ...]:
    """The views of `queries/views`, each after those that it reads; raises BadQuestion, also for a circle."""
    return _views(shipped("queries") if folder is None else folder)


@cache  # every store that a process opens needs the same, and parsing them takes a tenth of a second
def _views(folder: Path) -> tuple[View, ...]:
    place = folder / VIEWS
    found: dict[str, View] = {}
    needs: dict[str, set[str]] = {}
    with duckdb.connect(":memory:") as parser:
        for path in sorted(place.glob("*.sql")):
            view = _view(path)
            found[view.name] = view
            needs[view.name] = _tables_read(view, parser, path)
    graph = {name: sorted(tables & set(found)) for name, tables in needs.items()}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        raise BadQuestion(
            f"ordering the views of {place}", f"a circle: {circle}", "views that build on others"
        ) from error
    return tuple(found[name] for name in order)


def bind(question: Question, given: Mapping[str, object]) -> dict[str, object]:
    """The value of every parameter of the question: what was given, converted to its type, else the default.

    Raises BadInput for an unknown parameter, a value of another type, outside the choices or too small, and for a
    required one that is absent.
    """
    doing = f"asking {question.name}"
    everything = ", ".join(map(str, question.params.values())) or "it takes no parameters"
    if unknown := [name for name in given if name not in question.params]:
        near = nearest(unknown[0], question.params)
        raise BadInput(
            doing,
            f"there is no parameter {unknown[0]!r}",
            everything,
            f"Did you mean {_or(near)}?" if near else "",
        )
    absent = [name for name, param in question.params.items() if param.default is REQUIRED and name not in given]
    if absent:
        raise BadInput(doing, f"no value for {', '.join(absent)}", everything, f"Write {absent[0]}=VALUE")
    return {
        name: _bound(param, given[name], doing) if name in given else param.default
        for name, param in question.params.items()
    }


def nearest(name: str, names: Mapping[str, object]) -> list[str]:
    """Up to three of the names that are alike, those first that end in it after a slash."""
    ending = [known for known in names if known.rpartition("/")[2] == name.rpartition("/")[2]]
    alike = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return list(dict.fromkeys(ending + alike))[:3]


def _bound(param: Param, value: object, doing: str) -> object:
    """One value, converted and checked."""
    if param.default is None and is_null(value):
        return None
    try:
        result = convert(value, param.type)
    except ValueError as error:
        raise BadInput(doing, f"{param.name}={value!r}", f"{error} for {param}") from error
    if not param.allows(result):
        raise BadInput(doing, f"{param.name}={value!r}", param.allowed)
    return result


def _view(path: Path) -> View:
    """The view in a file, whose stem is its name; raises BadQuestion."""
    text = path.read_text(encoding="utf-8-sig")
    header = split(text, path)
    if not path.stem.isidentifier() or not header.help:
        raise BadQuestion(
            f"reading {path}, line 1",
            "a view without a line of help, or whose file name cannot be a table's name",
            "-- help, in a file such as head_sums.sql",
        )
    if parameters := sorted(statement_parameters(text, path)):
        raise BadQuestion(f"reading {path}", f"the view uses ${parameters[0]}", "a view without parameters")
    sql = "\n".join(text.split("\n")[header.n_lines :]).strip().removesuffix(";")
    return View(path.stem, sql, header.help, parse_returns(header, path))


def _tables_read(view: View, parser: duckdb.DuckDBPyConnection, path: Path) -> set[str]:
    """The unqualified names of tables that a view reads, from DuckDB's parse tree.

    Not `duckdb.get_table_names`: that binds too, so it fails on a join `using` of tables which are not there yet.
    """
    row = parser.execute("select json_serialize_sql(?)", [view.sql]).fetchone()
    tree = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        raise BadQuestion(f"reading {path}", str(tree.get("error_message")), "a SELECT that can be a view")
    names = set(_base_tables(tree["statements"], frozenset()))
    if view.name in names:
        raise BadQuestion(
            f"reading {path}", f"the view reads itself, {view.name}", "another name, or one with a schema"
        )
    return names


def _base_tables(node: object, hidden: frozenset[str]) -> Iterator[str]:
    """The names of tables below a node of the tree, except common table expressions, which hide them."""
    if isinstance(node, list):
        for child in node:
            yield from _base_tables(child, hidden)
    elif isinstance(node, dict):
        if node.get("type") == "BASE_TABLE" and not node.get("schema_name") and node["table_name"] not in hidden:
            yield node["table_name"]
        expressions = (node.get("cte_map") or {}).get("map", [])
        inner = hidden | {entry["key"] for entry in expressions}
        for entry in expressions:
            # An expression of the same name as a view may read that view.
            yield from _base_tables(entry["value"], inner - {entry["key"]})
        for name, child in node.items():
            if name != "cte_map":
                yield from _base_tables(child, inner)


def _or(names: list[str]) -> str:
    return " or ".join(names)
