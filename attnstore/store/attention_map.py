"""This file is what a map is handed over as: an array that knows its layers, heads and labels."""

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from attnstore.errors import BadInput
from attnstore.store.optional import optional

_SHOWN = 40


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMap:
    """Weights of one example from queries to keys: 0-1, or lengths where `of` is not attention.

    `weights` is float32 over `dims`, a part of (layer, head, query, key) in this order: a layer or head that was
    asked for by its number has no axis. `layers` and `heads` are the numbers in it, zero-based, `queries` and `keys`
    the labels; no heads where those of a layer were taken together. `level` is token or word. In a store of the largest
    weights only, the others are NaN.
    """

    weights: NDArray[np.float32]
    dims: tuple[str, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    kind: str
    level: str
    example: int
    name: str
    of: str = "attention"

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes in `dims`."""
        return self.weights.shape

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """The weights, for NumPy."""
        return np.array(self.weights, dtype, copy=copy)

    def to_numpy(self) -> NDArray[np.float32]:
        """The weights."""
        return self.weights

    def to_xarray(self) -> Any:
        """An xarray.DataArray with layer and head numbers, positions and labels as coordinates. Needs xarray."""
        xarray = optional("xarray", "turning a map into an xarray.DataArray")
        coords: dict[str, Any] = {
            "query": np.arange(len(self.queries)),
            "key": np.arange(len(self.keys)),
            "query_label": ("query", list(self.queries)),
            "key_label": ("key", list(self.keys)),
        }
        for dim, numbers in (("layer", self.layers), ("head", self.heads)):
            if numbers:
                coords[dim] = list(numbers) if dim in self.dims else numbers[0]
        attrs = {
            "kind": self.kind,
            "level": self.level,
            "example": self.example,
            "name": self.name,
            "weights": self.of,
        }
        return xarray.DataArray(self.weights, dims=self.dims, coords=coords, name="weight", attrs=attrs)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of one head, queries down and keys across. Needs pandas; BadInput for several heads."""
        if self.weights.ndim != 2:
            raise BadInput(
                "turning a map into a pandas.DataFrame",
                f"the dimensions {', '.join(self.dims)}",
                "query, key",
                "Ask for one layer and one head, or use to_xarray()",
            )
        pandas = optional("pandas", "turning a map into a pandas.DataFrame")
        return pandas.DataFrame(self.weights, index=list(self.queries), columns=list(self.keys))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, self.shape, strict=True))
        fixed = "".join(
            f", {dim} {numbers[0]}"
            for dim, numbers in (("layer", self.layers), ("head", self.heads))
            if numbers and dim not in self.dims
        )
        fixed += "" if self.of == "attention" else f", {self.of}"
        return f"<AttentionMap {self.kind} {self.level}s of example {self.example} ({self.name}){fixed} [{sizes}]>"

    def _repr_html_(self) -> str:
        title = html.escape(repr(self)[1:-1])
        if self.weights.ndim != 2 or max(self.shape, default=0) > _SHOWN:
            return f"<p>{title}</p>"
        head = "".join(f"<th>{html.escape(key)}</th>" for key in self.keys)
        darkest = 1.0 if self.of == "attention" else float(np.nanmax(self.weights, initial=0)) or 1.0
        rows = "".join(
            f"<tr><th>{html.escape(query)}</th>{''.join(_cell(weight, darkest) for weight in row)}</tr>"
            for query, row in zip(self.queries, self.weights.tolist(), strict=True)
        )
        return f"<table><caption>{title}</caption><tr><th></th>{head}</tr>{rows}</table>"


def _cell(weight: float, darkest: float) -> str:
    if weight != weight:
        return "<td></td>"
    return f'<td style="background:rgba(31,119,180,{min(max(weight / darkest, 0), 1):.2f})">{weight:.2f}</td>'
