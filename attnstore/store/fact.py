"""This file says what a fact table is to the read side: how it is filled from maps, or from other tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from attnstore.reduce.columns import Columns

By = Literal["head", "row", "example"]

Reduction = Callable[..., Columns]
"""(weights, frame, rows, **parameters) -> columns; see `Fact.by` for their shapes."""

STATISTIC = "statistic"
"""The parameter that chooses a reading; it goes to no function."""

WEIGHTS = "weights"
"""The parameter that chooses what a reduction gets: `attention`, or `norm`, each weight times the length of what its
head moves from the key. It goes to no function, and stored facts are of attention."""

CHOOSING = ("example", "sample")
"""Parameters that choose examples, which no reduction gets: one by number, or so many, evenly spread (0: all)."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A table that `reduce` fills from the maps, an example at a time.

    `by` says what it gets and gives. "head": weights [head, query, key], values [head] or [head, item], a row for
    each head. "row": the same weights, key columns [row] and values [head, row] that become lists over heads.
    "example": weights [layer, head, query, key] of all heads at once, columns [row] or [row, item].

    `rows` are SQL statements for what the reduction needs to know of the examples: column `example` first, in order
    of it; `$side` is the side whose tokens lie along the axes, and names of `defaults` may occur in them. Such
    parameters do not go to the reduction. `evidence` names evidence whose lists are handed over like rows (see
    `store/known_lists.py`). Cross maps, which have no diagonal, are left out unless `cross`. Of weights that are norms
    each row is divided by its sum where `shares` says so.
    """

    schema: pa.Schema
    reduce: Reduction
    by: By
    defaults: Mapping[str, object] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    cross: bool = False
    evidence: str | None = None
    shares: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns beyond example and kind."""
        if self.by == "head":
            return ("layer", "head")
        names = (f.name for f in self.schema if not pa.types.is_list(f.type))
        return tuple(name for name in names if name not in ("example", "kind"))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a table is made from: a fact table, and the SQL whose answer is given to `make`.

    Names of the made table's parameters may occur in the SQL.
    """

    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class Derived:
    """A table that `make` fills from a reading; where `readings` has several, a parameter `statistic` names one.

    Parameters that the table of the reading takes go there, the others to `make`.
    """

    schema: pa.Schema
    readings: Mapping[str, Reading]
    make: Callable[..., pa.Table]
    defaults: Mapping[str, object] = field(default_factory=dict)

    def reading(self, params: Mapping[str, object]) -> Reading:
        """The reading for these parameters; KeyError for a statistic that is not there."""
        return self.readings[str({**self.defaults, **params}.get(STATISTIC, ""))]
