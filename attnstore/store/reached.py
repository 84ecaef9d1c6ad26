"""This file finds the tables that an SQL statement reads, from DuckDB's own parse tree."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import duckdb

_BY_NAME = {"query", "query_table"}
"""Table functions that read a table named by a string."""

_CATALOGUE = ("duckdb_", "pragma_")
"""How table functions begin that list whatever there is."""


Names = frozenset[tuple[str, str]]
"""Tables, each with the catalogue before its name, or else the schema; empty for neither. Lower case."""


class Reached:
    """Tells which names a statement reads, parsing on the cursor given; views are followed by the caller."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._parser = cursor
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Names, frozenset[str]] | None] = {}

    def names(self, text: str) -> Names | None:
        """Tables that the statement reads; None where that cannot be told.

        Common table expressions are among them: a name too many costs a check, a name too few would miss one.
        """
        found = self._found(text)
        return None if found is None else found[0]

    def defined(self, text: str) -> frozenset[str]:
        """The names that the statement gives to common table expressions, lower case."""
        found = self._found(text)
        return frozenset() if found is None else found[1]

    def _found(self, text: str) -> tuple[Names, frozenset[str]] | None:
        with self._lock:
            if text not in self._known:
                if len(self._known) > 256:
                    self._known.clear()
                self._known[text] = self._parse(text)
            return self._known[text]

    def close(self) -> None:
        """Close the cursor."""
        self._parser.close()

    def _parse(self, text: str) -> tuple[Names, frozenset[str]] | None:
        try:
            row = self._parser.execute("select json_serialize_sql($1::varchar)", [text]).fetchone()
            tree = json.loads(row[0]) if row else {"error": True}
        except (duckdb.Error, ValueError, RecursionError):
            return None
        if tree.get("error"):
            return None
        names: set[tuple[str, str]] = set()
        defined: set[str] = set()
        for node in _nodes(tree):
            kind = node.get("type")
            function = str(node.get("function", {}).get("function_name")).lower() if kind == "TABLE_FUNCTION" else ""
            if function in _BY_NAME or function.startswith(_CATALOGUE):
                return None
            if isinstance(node.get("cte_map"), dict):
                defined |= {str(entry["key"]).lower() for entry in node["cte_map"].get("map", ())}
            # Any other node that names a table is one that this release has not met.
            if kind == "BASE_TABLE":
                qualifier = node.get("catalog_name") or node.get("schema_name") or ""
                names.add((str(qualifier).lower(), str(node.get("table_name")).lower()))
            elif isinstance(node.get("table_name"), str) and node.get("table_name"):
                return None
        return frozenset(names), frozenset(defined)


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
