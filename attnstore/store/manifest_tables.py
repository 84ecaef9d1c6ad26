"""This file makes the small tables of a store that come from its manifests: kinds, heads, segments and additions."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from attnstore.format.names import KINDS
from attnstore.store.contents import Contents

MANIFEST_TABLES = ("kinds", "heads", "segments", "additions")

Rows = Sequence[Mapping[str, Any]]


def create_manifest_tables(connection: duckdb.DuckDBPyConnection, contents: Contents) -> None:
    """Create these tables in the schema `stored`."""
    for name, rows in _rows(contents).items():
        # Through JSON: making Arrow tables of Python objects loads pandas where it is installed, half a second.
        columns = json.dumps([_TYPES[name]])
        made = f"select unnest(from_json($rows, '{columns}'), recursive := true)"
        connection.execute(f"create table stored.{name} as {made}", {"rows": json.dumps(list(rows))})


def _rows(contents: Contents) -> dict[str, Rows]:
    kinds: list[Mapping[str, Any]] = []
    heads: list[Mapping[str, Any]] = []
    for position, name in enumerate(name for name in KINDS if name in contents.info.kinds):
        kind = contents.info.kinds[name]
        kinds.append({"kind": name, "position": position, "layers": kind.layers, "heads": kind.heads})
        share = max(1, kind.heads // max(1, kind.kv_heads))
        for index in range(kind.layers * kind.heads):
            layer, head = divmod(index, kind.heads)
            group = kind.param_groups[layer] if kind.param_groups else layer
            row = {"kind": name, "layer": layer, "head": head, "kv_head": head // share, "param_group": group}
            row |= {"queries": kind.queries, "keys": kind.keys, "causal": kind.causal, "position": index + 1}
            heads.append(row)
    units = []
    for unit in contents.units:
        size, examples = sum(file.bytes for file in unit.files), unit.rows.get("examples", 0)
        row = {"name": unit.id, "n_examples": examples, "n_files": len(unit.files), "n_bytes": size}
        row["tables"] = sorted(unit.rows)
        row["facts"] = json.dumps(dict(unit.facts), sort_keys=True)
        units.append((unit.is_segment, row))
    return {
        "kinds": kinds,
        "heads": heads,
        "segments": [row for segment, row in units if segment],
        "additions": [row for segment, row in units if not segment],
    }


_UNIT = {
    "name": "VARCHAR",
    "n_examples": "BIGINT",
    "n_files": "BIGINT",
    "n_bytes": "BIGINT",
    "tables": ["VARCHAR"],
    "facts": "VARCHAR",
}
_TYPES: Mapping[str, Mapping[str, object]] = {
    "kinds": {"kind": "VARCHAR", "position": "INTEGER", "layers": "INTEGER", "heads": "INTEGER"},
    "heads": {
        "kind": "VARCHAR",
        "layer": "SMALLINT",
        "head": "SMALLINT",
        "kv_head": "SMALLINT",
        "param_group": "INTEGER",
        "queries": "VARCHAR",
        "keys": "VARCHAR",
        "causal": "BOOLEAN",
        "position": "INTEGER",  # of the head's entry in a list over heads, from 1 as DuckDB counts
    },
    "segments": _UNIT,
    "additions": _UNIT,
}
