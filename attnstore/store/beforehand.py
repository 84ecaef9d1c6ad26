"""This file computes parts of a statement before the statement itself."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from typing import Any

import duckdb
import pyarrow as pa

from attnstore.store.layout import quoted
from attnstore.store.parse_tree import Node, nodes, parameters, parse, select, table_names, text_of

MOST_ROWS = 100_000
"""Rows of a subquery that is computed beforehand, and of keys that are taken from a table."""

Scope = Mapping[str, Node]
"""The common table expressions that a query sees, by name in lower case, in the order of their definition."""


class Unknown(Exception):
    """Something of the statement is not understood: it has to run as it stands."""


class Beforehand:
    """Runs parts of one statement on a cursor; what it computes stays in temporary tables there.

    Parts that read one of the tables `without` are not computed.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, params: Mapping[str, object], without: Collection[str]
    ) -> None:
        self._cursor, self._params, self._without = cursor, params, set(without)
        self._made = 0

    def computed(self, query: Node, scope: Scope) -> Node | None:
        """A query of the table that holds the answer of this one; None where it cannot be made, or is too large.

        What is computed is computed once: a random choice must be the same wherever the statement uses it. So every
        common table expression behind the query becomes a table as well, and is changed in `scope`.
        """
        behind = self._behind(query, scope)
        if behind is None:
            return None
        for index, name in enumerate(behind):
            value = scope[name]["value"]
            if not _is_made(value["query_node"]):
                made = self._made_of(value["query_node"], [scope[item] for item in behind[:index]])
                if made is None:
                    return None
                value["query_node"] = made
        return self._made_of(query, [scope[name] for name in behind])

    def distinct(self, query: Node, columns: Mapping[str, str | int]) -> pa.Table | None:
        """Distinct values of some columns, by name or by number, under new names; None where there are too many."""
        text, params = self._ready(query)
        names = self._names(text, params)
        chosen = (
            f"{quoted(at if isinstance(at, str) else names[at])} as {quoted(name)}" for name, at in columns.items()
        )
        found = self._cursor.sql(
            f"select distinct {', '.join(chosen)} from ({text}) limit {MOST_ROWS + 1}", params=params
        )
        table = found.to_arrow_table()
        return table if len(table) <= MOST_ROWS else None

    def columns(self, ref: Node, scope: Scope) -> frozenset[str]:
        """The columns of a table or subquery in FROM, lower case; Unknown where that cannot be told."""
        query = select(ref)
        behind = self._behind(query, scope)
        if behind is None:
            raise Unknown
        query["cte_map"]["map"] = [deepcopy(scope[name]) for name in behind]
        return frozenset(name.lower() for name in self._names(*self._ready(query)))

    def _made_of(self, query: Node, expressions: Sequence[Node]) -> Node | None:
        query = deepcopy(query)
        query["cte_map"]["map"] = [*deepcopy(list(expressions)), *query["cte_map"]["map"]]
        text, params = self._ready(query)
        names = self._names(text, params)
        if len(set(names)) < len(names):  # a table has no two columns of one name
            return None
        self._made += 1
        name = f"computed before {self._made}"
        text = f"create temp table {quoted(name)} as from ({text}) limit {MOST_ROWS + 1}"
        self._cursor.execute(text, params or None).fetchall()
        ((count,),) = self._cursor.execute(f"select count(*) from {quoted(name)}").fetchall()
        tree = parse(self._cursor, f"from {quoted(name)}")
        if count > MOST_ROWS or tree is None:
            return None
        made: Node = tree["statements"][0]["node"]
        return made

    def _behind(self, query: Node, scope: Scope) -> list[str] | None:
        """The common table expressions that a query reads, directly or not; None where one reads what it must not."""
        found, waiting = set[str](), [query]
        while waiting:
            names = table_names(waiting.pop())
            if names & self._without:
                return None
            waiting += [scope[name] for name in names & scope.keys() - found]
            found |= names & scope.keys()
        return [name for name in scope if name in found]

    def _names(self, text: str, params: Mapping[str, object]) -> list[str]:
        columns = self._cursor.sql(f"from ({text}) limit 0", params=dict(params)).description
        if any(str(column[1]).strip('"') == "NULL" for column in columns):  # a table gives it another type
            raise Unknown
        return [str(column[0]) for column in columns]

    def _ready(self, query: Node) -> tuple[str, dict[str, Any]]:
        """A query as SQL, and the parameters that it takes."""
        text = text_of(self._cursor, {"error": False, "statements": [{"node": query, "named_param_map": []}]})
        if text is None:
            raise Unknown
        return text, {name: self._params[name] for name in parameters(query)}


def _is_made(query: Node) -> bool:
    tables = [node for node in nodes(query) if node.get("type") == "BASE_TABLE"]
    return len(tables) == 1 and str(tables[0]["table_name"]).startswith("computed before ")
