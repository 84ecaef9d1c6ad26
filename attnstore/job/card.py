"""This file writes the README that a store carries: what it is, and how to open it without attnstore."""

import secrets
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from attnstore.format import names
from attnstore.format.commit import latest
from attnstore.format.manifest import Kept, Unit, read_store, read_unit

_CARD = """\
# {title}

Attention maps of `{model}` over a corpus of {examples} examples ({skipped} skipped), kept by attnstore.

| | |
|---|---|
| format | {format} |
| store | {store_id}, snapshot {snapshot}, content {content_hash} |
| model | {model}{revision} |
| kinds | {kinds} |
| precision | {precision}, maps: {maps} |
| corpus | {corpus}, licence: {licence} |
| size | {megabytes:.1f} MB in {files} files |

Open it with zarr (weights follow one another without padding; see the offsets in `examples`):

```python
import zarr
maps = zarr.open_group("segments/000000/maps.zarr", mode="r")
```

with duckdb, or with pandas:

```python
import duckdb
duckdb.sql("select layer, head, sum(max_sum) / sum(n_queries) from 'segments/*/head_facts.parquet' group by all")
```

```python
import pandas
tokens = pandas.read_parquet("segments/000000/tokens.parquet")
```

or with attnstore: `attnstore info .`, `attnstore questions`, `attnstore ask heads/entropy .`
"""


def write_card(root: Path) -> None:
    """Write README.md of the store at `root`, replacing the one of an earlier run."""
    info, snapshot = read_store(root), latest(root)
    units = [read_unit(root, f"{names.SEGMENTS}/{item.id}") for item in snapshot.segments]
    text = _CARD.format(
        title=info.title or "Attention maps",
        model=info.model["name"],
        revision=f" at {info.model['revision']}" if info.model["revision"] else "",
        examples=info.n_examples,
        skipped=info.corpus["skipped"],
        format=info.format,
        store_id=info.store_id,
        snapshot=snapshot.number,
        content_hash=snapshot.content_hash,
        kinds=", ".join(f"{name} {kind.layers} x {kind.heads}" for name, kind in info.kinds.items()),
        precision=info.precision,
        maps=_maps(root, info.kept, units),
        corpus=info.corpus["kind"],
        licence=info.corpus["licence"] or "not stated",
        megabytes=sum(file.bytes for unit in units for file in unit.files) / 1e6,
        files=sum(len(unit.files) for unit in units),
    )
    staging = root / f"{names.STAGING}{names.README}-{secrets.token_hex(4)}"
    staging.write_text(text, encoding="utf-8")
    staging.replace(root / names.README)


def _maps(root: Path, kept: Kept, segments: Sequence[Unit]) -> str:
    """Which maps are kept, and of the largest weights how much they hold."""
    if not kept.topk:
        return kept.maps
    files = [root / unit.folder / names.parquet_name("kept_facts") for unit in segments]
    sums = [pq.read_table(file, columns=["kept_sum", "rest_sum"]) for file in files if file.is_file()]
    held, left = (sum(float(table[name].to_numpy().sum()) for table in sums) for name in ("kept_sum", "rest_sum"))
    share = f", which hold {held / (held + left):.2%} of the weight" if held else ""
    return f"the {kept.topk} largest weights of each row{share}"
