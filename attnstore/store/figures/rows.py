"""This file hands the columns of an answer to a picture by what they do in it."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.catalogue.paint import Picture
from attnstore.errors import BadInput, NotFound


class Rows:
    """The rows of an answer, or some of them, as a picture sees them."""

    def __init__(self, table: pa.Table, picture: Picture, doing: str) -> None:
        self.table, self.picture, self.doing = table, picture, doing
        for column in picture.columns.values():
            if table.column_names.count(column) != 1:
                raise NotFound(doing, f"no column {column!r}, or two", f"one of {', '.join(table.column_names)}")
            kind = table.schema.field(column).type
            if pa.types.is_nested(kind) and picture.columns.get("sentence") != column:
                raise BadInput(doing, f"the column {column} is of type {kind}", "numbers or texts")

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def has(self, role: str) -> bool:
        """Whether the picture has a column for the role."""
        return role in self.picture.columns

    def name(self, role: str) -> str:
        """The name of the column of a role."""
        return self.picture.columns[role]

    def values(self, role: str) -> list[object]:
        """The values of a role, [row]; None throughout where the picture has no column for it."""
        return self.table[self.name(role)].to_pylist() if self.has(role) else [None] * len(self)

    def is_text(self, role: str) -> bool:
        """Whether the column of the role holds text."""
        return self.has(role) and not _is_number(self.table.schema.field(self.name(role)).type)

    def numbers(self, role: str) -> NDArray[np.float64]:
        """The values of a role as numbers [row], NaN for null; BadInput for a column that holds none."""
        if not self.has(role):
            return np.full(len(self), np.nan)
        kind = self.table.schema.field(self.name(role)).type
        if not _is_number(kind):
            raise BadInput(self.doing, f"the column {self.name(role)} is of type {kind}", "numbers")
        found = [np.nan if value is None else float(value) for value in self.table[self.name(role)].to_pylist()]
        return np.array(found, dtype=np.float64)

    def texts(self, role: str) -> list[str]:
        """The values of a role as text [row], empty for null."""
        return ["" if value is None else str(value) for value in self.values(role)]

    def distinct(self, role: str) -> list[object]:
        """The values of a role, each once: numbers in order, others as they first come, without null."""
        found = [value for value in dict.fromkeys(self.values(role)) if value is not None]
        return found if self.is_text(role) else sorted(found)  # type: ignore[type-var]

    def where(self, role: str, value: object) -> "Rows":
        """The rows that have the value."""
        return self._take([index for index, found in enumerate(self.values(role)) if found == value])

    def known(self, *roles: str) -> "Rows":
        """The rows that have a value for each of the roles."""
        return self._take(
            [i for i, found in enumerate(zip(*map(self.values, roles), strict=True)) if None not in found]
        )

    def parts(self, by: str, keys: Sequence[str]) -> list[tuple[str, "Rows"]]:
        """The rows by what sets their pictures apart, with its words, in the order of the answer.

        That is the column of the role `by`. Without one it is what all other text columns say, where the roles `keys`
        do not identify a row; where they do, there is one picture, named by texts that are the same throughout.
        """
        if self.has(by):
            prefix = "" if self.is_text(by) else f"{self.name(by)} "
            return [(f"{prefix}{value}", self.where(by, value)) for value in self.distinct(by)] or [("", self)]
        used = set(self.picture.columns.values())
        free = [field.name for field in self.table.schema if pa.types.is_string(field.type) and field.name not in used]
        columns = {name: self.table[name].to_pylist() for name in free}
        identified = len(set(zip(*map(self.values, keys), strict=True))) == len(self)
        names = [name for name in free if len(set(columns[name])) == 1] if identified else free
        said = [", ".join(str(columns[name][row]) for name in names) for row in range(len(self))]
        places: dict[str, list[int]] = {}
        for index, words in enumerate(said):
            places.setdefault(words, []).append(index)
        return [(words, self._take(indices)) for words, indices in places.items()] or [("", self)]

    def places(self) -> list[str]:
        """Which layer and head each row speaks of, as far as it does."""
        said = [[f"{role} {value}" for value in self.values(role)] for role in ("layer", "head") if self.has(role)]
        return [", ".join(words) for words in zip(*said, strict=True)] if said else [""] * len(self)

    def _take(self, indices: list[int]) -> "Rows":
        return Rows(self.table.take(pa.array(indices, pa.int64())), self.picture, self.doing)


def _is_number(kind: pa.DataType) -> bool:
    """Whether values of the type are numbers; a column that holds nothing but null may be."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    return any(test(kind) for test in tests)
