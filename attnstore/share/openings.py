"""This file writes the few lines of Python that open a store with zarr, duckdb, pandas and attnstore."""

from collections.abc import Iterator

from attnstore.format import names
from attnstore.format.manifest import Kind, Unit
from attnstore.share.listed import patterns, tables
from attnstore.store.contents import Contents

_ZARR = """\
The maps, with [zarr](https://zarr.dev). They follow one another without padding; `examples` says where each begins:"""
_DUCKDB = "The tables, with [DuckDB](https://duckdb.org):"
_COLUMNS = {"source": "n_tokens", "target": "n_target_tokens"}


def openings(contents: Contents) -> Iterator[str]:
    """The section of a card that opens the store, as lines; each program runs from the store's folder."""
    yield "\n## Open\n\nRun these in the folder of the store."
    segment = next((unit for unit in contents.segments if unit.rows.get("examples")), None)
    if segment is not None and contents.info.kept.maps != "none" and contents.info.kinds:
        name = next(name for name in names.KINDS if name in contents.info.kinds)
        lines = _largest if contents.info.kept.maps == "topk" else _weights
        yield from _python(_ZARR, *lines(contents, segment, name, contents.info.kinds[name]))
    there = tables(contents)
    if "head_facts" in there:
        files = patterns("head_facts", there["head_facts"], contents)
        select = "select kind, layer, head, sum(max_sum) / sum(n_queries) as largest_weight"
        query = f"{select} from read_parquet({files!r}) group by all order by all"
        yield from _python(_DUCKDB, "import duckdb", f'print(duckdb.sql("{query}"))')
    elif "tokens" in there:
        query = f"select text, count(*) as n from read_parquet({patterns('tokens', there['tokens'], contents)!r})"
        yield from _python(
            _DUCKDB,
            "import duckdb",
            f'print(duckdb.sql("{query} group by all order by n desc limit 10"))',
        )
    if "tokens" in there:
        yield from _python(
            "One table, with [pandas](https://pandas.pydata.org):",
            "import pandas",
            f'print(pandas.read_parquet("{next(iter(there["tokens"]))}").head())',
        )
    pinned = contents.snapshot.content_hash[:16]
    yield from _python(
        "All of it, with attnstore:",
        "import attnstore",
        f'store = attnstore.open(".", snapshot={contents.snapshot.number}, expect="{pinned}")',
        'print(store.ask("audit/counts"))',
    )


def _weights(contents: Contents, segment: Unit, name: str, kind: Kind) -> Iterator[str]:
    yield from _first(segment, name)
    queries, keys = (f'row["{_COLUMNS[side]}"]' for side in (kind.queries, kind.keys))
    yield f'first, n, m = int(row["cell_{name}"]), int({queries}), int({keys})'
    weights = f'maps["{name}"][:, :, first : first + n * m].reshape({int(kind.layers)}, {int(kind.heads)}, n, m)'
    yield f"weights = ({weights} / 255.0) ** 2" if contents.info.precision == "compact" else f"weights = {weights}"
    yield 'print(row["name"], weights.shape)  # [layer, head, query, key]'


def _largest(contents: Contents, segment: Unit, name: str, kind: Kind) -> Iterator[str]:
    yield from _first(segment, name)
    yield f'first, n = int(row["cell_{name}"]), int(row["{_COLUMNS[kind.queries]}"]) * {contents.info.kept.topk}'
    yield f'keys, weights = (maps[f"{name}_topk_{{what}}"][:, :, first : first + n] for what in ("key", "weight"))'
    first = "(weights[0, 0] / 255.0) ** 2" if contents.info.precision == "compact" else "weights[0, 0]"
    yield f'print(row["name"], keys[0, 0], {first})  # layer 0, head 0: row after row, the largest first'


def _first(segment: Unit, name: str) -> Iterator[str]:
    yield "import pandas, zarr"
    path = f"{segment.folder}/{names.parquet_name('examples')}"
    yield f'row = pandas.read_parquet("{path}").dropna(subset=["cell_{name}"]).iloc[0]'
    yield f'maps = zarr.open_group("{segment.folder}/{names.MAPS}", mode="r")'


def _python(text: str, *lines: str) -> Iterator[str]:
    yield f"\n{text}\n\n```python"
    yield from lines
    yield "```"
