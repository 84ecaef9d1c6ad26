"""This file makes the small tables of a store that come from its manifests: kinds, heads, segments and additions."""

import json

import pyarrow as pa

from attnstore.format.names import KINDS
from attnstore.store.contents import Contents


def manifest_tables(contents: Contents) -> dict[str, pa.Table]:
    """These tables by name."""
    kinds, heads = [], []
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
    unit_schema = pa.schema(
        [
            ("name", pa.string()),
            ("n_examples", pa.int64()),
            ("n_files", pa.int64()),
            ("n_bytes", pa.int64()),
            ("tables", pa.list_(pa.string())),
            ("facts", pa.string()),
        ]
    )
    return {
        "kinds": pa.Table.from_pylist(kinds, schema=_KINDS),
        "heads": pa.Table.from_pylist(heads, schema=_HEADS),
        "segments": pa.Table.from_pylist([row for segment, row in units if segment], schema=unit_schema),
        "additions": pa.Table.from_pylist([row for segment, row in units if not segment], schema=unit_schema),
    }


_I16, _I32 = pa.int16(), pa.int32()
_KINDS = pa.schema([("kind", pa.string()), ("position", _I32), ("layers", _I32), ("heads", _I32)])
_HEADS = pa.schema(
    [
        ("kind", pa.string()),
        ("layer", _I16),
        ("head", _I16),
        ("kv_head", _I16),
        ("param_group", _I32),
        ("queries", pa.string()),
        ("keys", pa.string()),
        ("causal", pa.bool_()),
        ("position", _I32),  # of the head's entry in a list over heads, from 1 as DuckDB counts
    ]
)
