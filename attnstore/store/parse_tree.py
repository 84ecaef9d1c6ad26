"""This file turns SQL into DuckDB's own parse tree, and a changed tree into SQL that says the same."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import duckdb

Node = dict[str, Any]
"""A node of the tree, as `json_serialize_sql` writes it."""

_ELSEWHERE = {"query_location", "query_location_length", "named_param_map"}


def parse(cursor: duckdb.DuckDBPyConnection, text: str) -> Node | None:
    """The tree of one SELECT; None for anything else."""
    # All rows are fetched, for a cursor does nothing else before.
    ((found,),) = cursor.execute("select json_serialize_sql($1::varchar)", [text]).fetchall()
    tree: Node = json.loads(found)
    return None if tree["error"] or len(tree["statements"]) != 1 else tree


def text_of(cursor: duckdb.DuckDBPyConnection, tree: Node) -> str | None:
    """SQL that parses to this very tree; None where DuckDB cannot write it."""
    ((text,),) = cursor.execute("select json_deserialize_sql($1::json)", [json.dumps(tree)]).fetchall()
    again = parse(cursor, text)
    return str(text) if again is not None and _meaning(again) == _meaning(tree) else None


def select(ref: Node, condition: Node | None = None) -> Node:
    """The tree of `select * from ref where condition`."""
    star = {"class": "STAR", "type": "STAR", "alias": "", "relation_name": "", "columns": False, "expr": None}
    star |= {"exclude_list": [], "replace_list": [], "qualified_exclude_list": [], "rename_list": []}
    return {
        "type": "SELECT_NODE",
        "modifiers": [],
        "cte_map": {"map": []},
        "select_list": [star],
        "from_table": deepcopy(ref),
        "where_clause": deepcopy(condition),
        "group_expressions": [],
        "group_sets": [],
        "aggregate_handling": "STANDARD_HANDLING",
        "having": None,
        "sample": None,
        "qualify": None,
    }


def nodes(tree: object) -> Iterator[Node]:
    """Every node below and with this one."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def queries(tree: object) -> Iterator[Node]:
    """The outermost queries below a node."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and "cte_map" in node:
            yield node
        elif isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def parameters(tree: object) -> set[str]:
    """The names of the parameters that a tree uses."""
    return {str(node["identifier"]) for node in nodes(tree) if node.get("class") == "PARAMETER"}


def table_names(tree: object) -> set[str]:
    """Names of tables without a qualifier, lower case."""
    found = (node for node in nodes(tree) if node.get("type") == "BASE_TABLE" and not is_qualified(node))
    return {str(node["table_name"]).lower() for node in found}


def is_qualified(ref: Node) -> bool:
    """Whether a table's name comes with a schema or a catalogue."""
    return bool(ref.get("schema_name") or ref.get("catalog_name"))


def _meaning(tree: Any) -> Any:
    """A tree without what does not change what it says."""
    if isinstance(tree, list):
        return [_meaning(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("type") == "SUBQUERY" and tree.get("alias") == "valueslist":
        # DuckDB writes a list of values as a subquery over one.
        inner = tree["subquery"]["node"].get("from_table") or {}
        if inner.get("type") == "EXPRESSION_LIST" and not tree["column_name_alias"]:
            return _meaning(inner)
    return {key: _meaning(value) for key, value in tree.items() if key not in _ELSEWHERE}
