"""This file is the first wall: it lets through one SELECT over published tables with judged functions, and no more.

It reads the tree of DuckDB's own parser and fails closed: whatever it does not know is refused. That a statement is a
SELECT says little, since `with x as (copy … to 'file') from x` is one and writes a file.
"""

import json
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from attnstore.errors import AttnStoreError

MOST_CHARACTERS = 64 * 1024
MOST_NODES = 20_000
"""Of the parse tree. A statement that fills a screen has some hundred."""
MOST_DEPTH = 200
MOST_TOKENS = 20_000
MOST_BRACKETS = 100
"""One inside the other, before anything is parsed: DuckDB's parser takes the square of those that stay open in time and
memory, gigabytes for what a request may hold."""

QUERIES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"}
TABLES = {"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "SHOW_REF"}
EXPRESSIONS = {
    "BETWEEN",
    "CASE",
    "CAST",
    "COLLATE",
    "COLUMN_REF",
    "COMPARISON",
    "CONJUNCTION",
    "CONSTANT",
    "DEFAULT",
    "FUNCTION",
    "LAMBDA",
    "LAMBDA_REF",
    "OPERATOR",
    "PARAMETER",
    "POSITIONAL_REFERENCE",
    "STAR",
    "SUBQUERY",
    "TYPE",
    "WINDOW",
}
OTHERS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"}
ORDERS = {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
SHOWN = {"DESCRIBE", "SUMMARY"}
BY_NAME = {"list_aggregate", "list_aggr", "array_aggregate", "array_aggr", "aggregate"}
"""Functions that call another one, which they are told by its name."""

_PLAIN = re.compile(r"[\w $-]+")
"""What a statement may call its own tables: nothing that could also be a file."""

_VALUES = {"current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"}
"""What DuckDB takes for a function although it is written as a column."""

_RULES = "One SELECT over the published tables; docs/service.md says what a statement may do"

Node = dict[str, Any]


class Refused(AttnStoreError, ValueError):
    """The statement asks for what this service does not do for strangers."""


@cache
def functions() -> tuple[frozenset[str], frozenset[str]]:
    """The functions of `functions.txt` that may be called in an expression, and those that may stand in FROM."""
    judged = verdicts()
    return judged["allow"] | judged["allow syntax"], judged["allow table"]


@cache
def verdicts() -> dict[str, frozenset[str]]:
    """Every name of `functions.txt`, by the list that it stands in."""
    found: dict[str, set[str]] = {}
    verdict = ""
    for line in (Path(__file__).parent / "functions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line[0] == " ":
            found[verdict] |= set(line.split())
        else:
            verdict = line.strip()
            found.setdefault(verdict, set())
    return {name: frozenset(names) for name, names in found.items()}


class Gate:
    """Judges statements over some published tables. Not for several threads: it parses on one connection."""

    def __init__(self, published: Set[str]) -> None:
        self._published = frozenset(name.lower() for name in published)
        self._parser = duckdb.connect(":memory:", config={"python_enable_replacements": False})
        # A table of the statement's own must not be one that DuckDB has, lest the two are taken for one another.
        own = self._parser.execute(
            "select lower(view_name) from duckdb_views() where schema_name in ('main', 'pg_catalog')"
        ).fetchall()
        self._system = frozenset(name for (name,) in own) - self._published
        self._parser.execute("set enable_external_access = false")
        self._parser.execute("set lock_configuration = true")

    def check(self, text: str, doing: str = "running SQL") -> None:
        """Raise Refused unless the statement may run; what fails when names are bound is left to the engine."""
        self._judged(text, doing)

    def check_condition(self, where: str, doing: str = "running SQL") -> None:
        """The same for a condition on examples, which must not go on behind the bracket that it will stand in."""
        head = "select example from examples where"
        found, plain = self._judged(f"{head} (\n{where}\n)", doing), self._judged(f"{head} (true)", doing)
        if _frame(found) != _frame(plain):
            raise Refused(doing, "a condition that goes on behind its bracket", "one condition on columns of examples")

    def _judged(self, text: str, doing: str) -> Node:
        """The tree of a statement that may run."""
        if len(text) > MOST_CHARACTERS:
            raise Refused(doing, f"{len(text)} characters", f"at most {MOST_CHARACTERS}")
        if "\0" in text:
            raise Refused(doing, "a zero byte", "text")
        _check_tokens(text, doing)
        tree = self._tree(text, doing)
        statements = tree.get("statements")
        if not isinstance(statements, list) or len(statements) != 1:
            found = len(statements) if isinstance(statements, list) else 0
            raise Refused(doing, f"{found} statements", "one", _RULES)
        _Walk(self._published, self._system, doing).statement(statements[0])
        return dict(statements[0])

    def _tree(self, text: str, doing: str) -> Node:
        try:
            row = self._parser.execute("select json_serialize_sql($1::varchar)", [text]).fetchone()
            tree = json.loads(row[0]) if row else None
        except (duckdb.Error, ValueError, RecursionError, MemoryError) as error:
            raise Refused(doing, "SQL that cannot be looked through", "a simpler statement", _RULES) from error
        if not isinstance(tree, dict):
            raise Refused(doing, "no parse tree", "one SELECT", _RULES)
        if tree.get("error"):
            said = str(tree.get("error_message", "no message"))
            if tree.get("error_type") == "parser":
                raise Refused(doing, f"SQL that does not parse: {said.splitlines()[0]}", "one SELECT", "")
            # DuckDB makes several statements of a PIVOT that first has to find its values.
            raise Refused(doing, "a statement that is no SELECT", "one SELECT; PIVOT … IN (values)", _RULES)
        return tree

    def close(self) -> None:
        """Close the parser."""
        self._parser.close()


@dataclass(frozen=True, slots=True)
class _Walk:
    """One look at a tree. What is visited carries the tables that the statement has defined around it."""

    published: frozenset[str]
    system: frozenset[str]
    doing: str

    def statement(self, tree: Node) -> None:
        """Visit every node, the outermost first."""
        if set(tree) - {"node", "named_param_map"}:
            self.refuse(f"a statement with {', '.join(sorted(set(tree) - {'node', 'named_param_map'}))}")
        waiting: list[tuple[Any, frozenset[str], int]] = [(tree["node"], frozenset(), 0)]
        seen = 0
        while waiting:
            item, names, depth = waiting.pop()
            if isinstance(item, list):
                waiting += [(one, names, depth) for one in item]
                continue
            if not isinstance(item, dict):
                continue
            seen += 1
            if seen > MOST_NODES or depth > MOST_DEPTH:
                self.refuse("a statement too large or too deep to look through")
            self.judge(item, names)
            waiting += [(part, inner, depth + 1) for part, inner in self.below(item, names)]

    def below(self, node: Node, names: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
        """The parts of a node, each with the tables that are defined where it stands."""
        if "cte_map" in node:
            for entry in (node["cte_map"] or {}).get("map") or ():
                inner, own = entry["value"], str(entry["key"]).lower()
                self.check_own(own)
                query = inner.get("query_node") or inner.get("query")
                is_recursive = isinstance(query, dict) and query.get("type") == "RECURSIVE_CTE_NODE"
                yield inner, names | {own} if is_recursive else names
                names |= {own}  # seen by those that follow, and by the query itself
        is_call = node.get("type") == "TABLE_FUNCTION" and "class" not in node
        for key, part in node.items():
            if key == "function" and is_call:
                # Judged as one that makes rows; below it are values.
                yield list(part.values()), names
            elif key != "cte_map":
                yield part, names

    def judge(self, node: Node, names: frozenset[str]) -> None:
        """Raise Refused for a node that is not known to be harmless."""
        kind, group = node.get("type"), node.get("class")
        if group is not None:
            if group not in EXPRESSIONS:
                self.refuse(f"an expression of kind {group}")
            if group in ("FUNCTION", "WINDOW"):
                self.check_function(node, functions()[0], most_parts=2)
            elif group == "TYPE":
                self.check_type(node)
            elif group == "COLUMN_REF" and [str(name).lower() for name in node["column_names"]][1:] == []:
                self.check_column(str(node["column_names"][0]))
        elif "cte_map" in node:
            if kind not in QUERIES:
                self.refuse(f"a query of kind {kind}")
        elif isinstance(kind, str):
            if kind in TABLES:
                self.check_table(node, names)
            elif kind not in OTHERS | ORDERS:
                self.refuse(f"a part of kind {kind}")

    def check_table(self, node: Node, names: frozenset[str]) -> None:
        """A table of FROM: published, or defined around it."""
        kind = node["type"]
        if kind == "TABLE_FUNCTION":
            self.check_function(node["function"], functions()[1], "in FROM")
        elif kind == "SHOW_REF":
            if node.get("show_type") not in SHOWN or not node.get("query") or node.get("table_name"):
                self.refuse("SHOW", "DESCRIBE or SUMMARIZE of a published table")
        elif kind == "PIVOT" and any(pivot.get("pivot_enum") for pivot in node.get("pivots") or ()):
            self.refuse("PIVOT over a type", "PIVOT … IN (values)")
        elif kind == "BASE_TABLE":
            name, schema = str(node.get("table_name", "")).lower(), str(node.get("schema_name") or "").lower()
            path = [str(part).lower() for part in (node.get("qualified_name") or {}).get("path", [name])]
            # A recursion WITH … USING KEY calls what it has found until now by its name in this schema.
            is_own = name in names and schema in ("", "recurring")
            is_near = not node.get("catalog_name") and not node.get("at_clause") and path in ([name], [schema, name])
            if not is_near or (schema not in ("", "main") and not is_own):
                self.refuse(f"a table outside of the published ones: {_qualified(node)}")
            if name not in self.published and not is_own:
                known = ", ".join(sorted(self.published))
                self.refuse(f"the table {_qualified(node)}", f"one of {known}")

    def check_function(self, node: Node, allowed: frozenset[str], where: str = "", most_parts: int = 1) -> None:
        """A function of the list. Of two parts, `form.lower()`, the first is its argument: no schema has functions."""
        name = str(node.get("function_name", ""))
        path = [str(part) for part in (node.get("qualified_name") or {}).get("path", [name])]
        # DuckDB does not tell small letters from large ones in names of functions.
        is_allowed = name in allowed or name.lower() in allowed
        if not is_allowed or path[-1:] != [name] or len(path) > most_parts:
            self.refuse(f"the function {'.'.join(path)} {where}".rstrip(), "one that only computes, of its list")
        if name.lower() in BY_NAME:
            self.check_named(node, len(path) == 1)

    def check_named(self, node: Node, has_list: bool) -> None:
        """The aggregate that a function of lists takes by its name: it must be written out, and be in the list."""
        arguments = [item.get("expression", item) for item in node.get("arguments") or ()]
        named = arguments[1:2] if has_list else arguments[:1]  # `words.list_aggr('sum')` has its list in the path
        literal = (named[0].get("literal") or {}) if named else {}
        if literal.get("kind") != "STRING" or str(literal.get("text")).lower() not in functions()[0]:
            self.refuse(f"{node['function_name']} with another aggregate", "the name of one of its list, in quotes")

    def check_type(self, node: Node) -> None:
        """A type of DuckDB's own, without a schema."""
        if node.get("schema") or node.get("catalog") or len((node.get("qualified_name") or {}).get("path", [""])) > 1:
            self.refuse("a type with a schema", "a type of DuckDB")

    def check_column(self, name: str) -> None:
        """A column without its table."""
        if name.lower() in _VALUES:
            self.refuse(f"the value {name}", f"table.{name} for a column of that name")

    def check_own(self, name: str) -> None:
        """The name of a table that the statement defines."""
        if name in self.system or not _PLAIN.fullmatch(name):
            self.refuse(f"a table of its own named {name!r}", "another name")

    def refuse(self, found: str, expected: str = "") -> None:
        """Say what was met."""
        raise Refused(self.doing, found, expected or "one SELECT over the published tables", _RULES)


def _check_tokens(text: str, doing: str) -> None:
    """Raise Refused for what could cost the parser itself too much."""
    try:
        letters = text.encode()
        tokens = duckdb.tokenize(text)
    except (duckdb.Error, ValueError) as error:
        raise Refused(doing, "what is not text", "one SELECT", _RULES) from error
    deep = deepest = 0
    for place, kind in tokens:
        if kind == duckdb.token_type.operator:
            sign = letters[place : place + 1]
            deep += (sign in (b"(", b"[", b"{")) - (sign in (b")", b"]", b"}"))
            deepest = max(deepest, deep)
    if len(tokens) > MOST_TOKENS or deepest > MOST_BRACKETS:
        found = f"{len(tokens)} words and signs, {deepest} brackets inside one another"
        raise Refused(doing, found, f"at most {MOST_TOKENS} and {MOST_BRACKETS}")


def _frame(statement: Node) -> Any:
    """What stands around the condition of a statement."""
    node = statement["node"]
    columns = [item.get("column_names") for item in node.get("select_list") or ()]
    left_out = {"where_clause", "select_list", "from_table"}
    return (
        columns,
        (node.get("from_table") or {}).get("table_name"),
        {k: v for k, v in node.items() if k not in left_out},
    )


def _qualified(node: Node) -> str:
    parts = (node.get("catalog_name"), node.get("schema_name"), node.get("table_name"))
    return ".".join(str(part) for part in parts if part)
