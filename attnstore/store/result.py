"""This file is what an answer is handed over as: an Arrow table that knows where it comes from."""

import hashlib
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import BadInput, NotFound
from attnstore.format.commit import tools
from attnstore.store.answer_text import csv_text
from attnstore.store.optional import optional

if TYPE_CHECKING:
    from attnstore.catalogue.question import Question

_SHOWN = 20
_CITED = ("attnstore", "duckdb", "pyarrow", "zarr")
_BESIDE = ("made", "text", "threads")


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an answer comes from: the store, its state, and what was asked.

    `compared_with` is the second store of a comparison: what identifies it, by the names of the fields above. `made`
    is what `attnstore.store.cited.made_of` says of the store, `text` the whole file of a question that does not ship,
    and `threads` how many DuckDB had, None for one a core.
    """

    store_id: str
    title: str
    snapshot: int
    content_hash: str
    model: str
    revision: str
    question: str | None
    source: str | None
    sql: str
    params: Mapping[str, object]
    where: str | None = None
    compared_with: Mapping[str, object] | None = None
    made: Mapping[str, object] = field(default_factory=dict)
    text: str | None = None
    threads: int | None = None


class Result:
    """The rows of an answer. It hands them to any library that takes Arrow, and iterates over them as dicts."""

    def __init__(self, table: pa.Table, provenance: Provenance, question: "Question | None" = None) -> None:
        self.table, self.provenance, self.question = _plain(table), provenance, question

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.table.to_batches(max_chunksize=1024):
            yield from batch.to_pylist()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream, for polars, DuckDB, pandas and others."""
        return self.table.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The rows as a pyarrow.Table."""
        return self.table

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame. Needs pandas."""
        optional("pandas", "turning a result into a pandas.DataFrame")  # pyarrow would fail less clearly
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars.DataFrame. Needs polars."""
        return optional("polars", "turning a result into a polars.DataFrame").DataFrame(self.table)

    def to_numpy(self) -> dict[str, NDArray[Any]]:
        """The columns as arrays by name; missing numbers are NaN."""
        return {name: self.table[name].to_numpy(zero_copy_only=False) for name in self.columns}

    def to_xarray(self, dims: Sequence[str]) -> Any:
        """An xarray.Dataset of the other columns over the columns `dims`, which must identify a row.

        Needs pandas and xarray. NotFound for an unknown column, BadInput where several rows have the same `dims`.
        """
        xarray = optional("xarray", "turning a result into an xarray.Dataset")
        for dim in dims:
            self._check_column(dim)
        frame = self.to_pandas().set_index(list(dims))
        if not frame.index.is_unique:
            raise BadInput(
                "turning a result into an xarray.Dataset",
                f"several rows with the same {', '.join(dims)}",
                f"dims that identify a row, of {', '.join(self.columns)}",
            )
        return xarray.Dataset.from_dataframe(frame)

    def to_grid(self, column: str | None = None) -> NDArray[np.float64]:
        """A column as an array [layer, head], NaN where there is no row. None is the column that the question paints.

        BadInput without columns layer and head, or where several rows have the same ones.
        """
        doing = "turning a result into layers x heads"
        painted = (
            one.columns["value"] for one in (self.question.pictures if self.question else ()) if one.kind == "grid"
        )
        numeric = (name for name in painted if name in self.columns and not pa.types.is_string(self.table[name].type))
        chosen = column or next(numeric, None) or self._only_number(doing)
        for name in (chosen, *_KEYS):
            self._check_column(name)
        if not len(self):
            return np.zeros((0, 0))
        columns = self.to_numpy()
        layer, head = (columns[name].astype(np.int64) for name in _KEYS)
        grid = np.full((int(layer.max()) + 1, int(head.max()) + 1), np.nan)
        if len(np.unique(layer * grid.shape[1] + head)) < len(self):
            others = [name for name in self.columns if name not in (*_KEYS, chosen)]
            raise BadInput(
                doing,
                "several rows with the same layer and head",
                "one",
                f"Choose among {', '.join(others)} with a parameter of the question, or in SQL" if others else "",
            )
        grid[layer, head] = columns[chosen].astype(np.float64)
        return grid

    def plot(self, column: str | None = None, *, picture: str | None = None, ax: Any = None) -> Any:
        """The matplotlib axes with a picture of the answer; an array of axes where it has several panels.

        `picture` is one that the question paints, or a description such as "bars(accuracy, by=relation)"; None is the
        question's first. `column` is short for the grid of that column. Needs matplotlib. BadInput where `ax` is given
        for several panels, NotFound and BadQuestion for a picture that is not there or cannot be read.
        """
        # Only here, since pictures know what a result is.
        from attnstore.catalogue.paint import Picture
        from attnstore.store.figures.figure import panels
        from attnstore.store.plotting import draw

        wanted: str | Picture | None = picture
        if picture is None and (column is not None or not (self.question and self.question.pictures)):
            value = column or self._only_number("drawing a result")
            wanted = Picture("grid", {"value": value, "layer": "layer", "head": "head"}, "grid")
        return draw(panels(self, wanted), ax)

    def cite(self) -> dict[str, Any]:
        """What identifies this answer, and is enough to ask for it again: see docs/citing.md.

        `origin`, how the store was made, the number of rows, and `answer_sha256`: the sha256 of the answer as CSV, as
        `attnstore ask --format csv` writes it. The sums of several threads may differ in their last digit; open
        the store with `threads=1` for an answer that comes back to the bit, as `attnstore cite` does.
        """
        facts, written = self.provenance, csv_text(self.table).encode("utf-8", "surrogatepass")
        own = {"text": facts.text} if facts.text is not None else {}
        answer = {"rows": len(self), "answer_sha256": hashlib.sha256(written).hexdigest()}
        return self.origin() | own | dict(facts.made) | {"threads": facts.threads} | answer

    def origin(self) -> dict[str, Any]:
        """Store, content hash, model, question, SQL, parameters and versions.

        The answer of a comparison has the second store under `compared_with`.
        """
        facts = self.provenance
        cited = {name: getattr(facts, name) for name in facts.__slots__ if name not in _BESIDE}
        if facts.compared_with is None:
            del cited["compared_with"]
        return cited | {"versions": cited_versions()}

    def __repr__(self) -> str:
        head = self.table.slice(0, _SHOWN)
        cells = [list(self.columns), *([_written(value) for value in row.values()] for row in head.to_pylist())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)] if self.columns else []
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        more = f", {_SHOWN} shown" if len(self) > _SHOWN else ""
        return "\n".join([*lines, f"{len(self)} rows{more}"])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(_written(value))}</td>' for value in row.values())}</tr>"
            for row in self.table.slice(0, _SHOWN).to_pylist()
        )
        more = f", {_SHOWN} shown" if len(self) > _SHOWN else ""
        return f"<table><tr>{head}</tr>{rows}</table><p>{len(self)} rows{more}</p>"

    def _only_number(self, doing: str) -> str:
        """The one column of real numbers; BadInput for none or several."""
        names = [f.name for f in self.table.schema if pa.types.is_floating(f.type) and f.name not in _KEYS]
        if len(names) != 1:
            raise BadInput(doing, f"the columns {', '.join(names) or 'hold no numbers'}", "one, named by column=")
        return str(names[0])

    def _check_column(self, name: str) -> None:
        if name not in self.columns:
            raise NotFound(f"looking for the column {name!r}", "there is none", f"one of {', '.join(self.columns)}")


_KEYS = ("layer", "head")


def cited_versions() -> dict[str, str]:
    """Versions of the packages that an answer may depend on."""
    return {name: version for name, version in tools().items() if name in _CITED}


def _plain(table: pa.Table) -> pa.Table:
    """The table with whole decimals as int64 and others as float64: DuckDB sums integers into decimals of 38 digits."""
    for index, column_field in enumerate(table.schema):
        if not pa.types.is_decimal(column_field.type):
            continue
        kind = pa.int64() if column_field.type.scale == 0 else pa.float64()
        try:
            column = table.column(index).cast(kind)
        except pa.ArrowInvalid:  # a sum beyond 64 bits stays a decimal
            continue
        table = table.set_column(index, pa.field(column_field.name, kind), column)
    return table


def _written(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value).replace("\n", " ")
    return text if len(text) <= 60 else text[:59] + "…"
