"""This file hands a reduction lists that the model gave for each token, such as the lengths of what heads move."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.store.database import Database
from attnstore.store.needs import lacking

_STATEMENTS: Mapping[str, str] = {
    "value_norms": """
        select example, value_norm from stored.value_norms
        where kind = $kind and example in (select unnest($examples)) order by example, token
    """,
    "value_grams": """
        select example, gram, stream, square, gram_ln, stream_ln, square_ln, scale from stored.value_grams
        where kind = $kind and example in (select unnest($examples)) order by example, layer, token
    """,
}


class KnownLists:
    """The rows of one table of evidence. They may be as large as the maps, so that a block of examples is read."""

    def __init__(self, database: Database, evidence: str, doing: str) -> None:
        self._database, self._evidence, self._doing = database, evidence, doing

    def of(self, kind: str, examples: Sequence[int], rows: Sequence[int]) -> list[dict[str, NDArray[Any]]]:
        """For each example its columns [row] or [row, item], null as NaN; NotStored where it has not so many `rows`."""
        params = {"kind": kind, "examples": list(examples)}
        table = self._database.run(_STATEMENTS[self._evidence], params, doing=self._doing)
        order = table["example"].to_numpy()
        columns = {name: _array(table[name].combine_chunks()) for name in table.column_names[1:]}
        found = []
        for example, count in zip(examples, rows, strict=True):
            first, stop = np.searchsorted(order, [example, example + 1])
            if stop - first != count:
                raise lacking(self._evidence, self._doing, f"that of example {example} is missing")
            found.append({name: column[first:stop] for name, column in columns.items()})
        return found


def _array(column: pa.Array) -> NDArray[Any]:
    """[row], or [row, item] of lists of one length; no items where every list is null."""
    if not pa.types.is_list(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    items = np.asarray(column.flatten().to_numpy(zero_copy_only=False))
    return items.reshape(len(column), len(items) // max(len(column), 1))
