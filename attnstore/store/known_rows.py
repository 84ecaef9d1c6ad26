"""This file hands a reduction what the store's tables know of one example, as arrays."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.catalogue.question import statement_parameters
from attnstore.store.database import Database

NONE = -1
"""What stands for null in a column of whole numbers."""


class KnownRows:
    """Answers to SQL statements, each cut by its first column, `example`, which it is ordered by."""

    def __init__(self, database: Database, statements: Sequence[str], params: Mapping[str, object], doing: str) -> None:
        self._tables: list[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]] = []
        for text in statements:
            table = database.run(text, {name: params[name] for name in sorted(named([text]))}, doing=doing)
            columns = {name: _array(table[name]) for name in table.column_names[1:]}
            self._tables.append((table["example"].to_numpy().astype(np.int64), columns))

    def of(self, example: int) -> dict[str, NDArray[Any]]:
        """The rows of one example: column name -> array [row of the statement that gives it]."""
        found: dict[str, NDArray[Any]] = {}
        for examples, columns in self._tables:
            first, stop = np.searchsorted(examples, [example, example + 1])
            found |= {name: column[first:stop] for name, column in columns.items()}
        return found


def named(statements: Iterable[str]) -> frozenset[str]:
    """The parameters in statements of the package's own."""
    return frozenset().union(*(statement_parameters(text, _HERE) for text in statements))


_HERE = Path("store/facts.py")


def _array(column: pa.ChunkedArray) -> NDArray[Any]:
    """Whole numbers with -1 for null, truth values with false, everything else as objects."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.fill_null(NONE).to_numpy())
    if pa.types.is_boolean(column.type):
        return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False))
    return np.array(column.to_pylist(), dtype=object)
