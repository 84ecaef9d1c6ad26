"""This file makes rows with lists over heads or layers, one for each token of an example."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.format.fact_tables import STORED


def listed(table: str, example: int, kind: str, tokens: int, columns: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    """Rows of a table whose keys are example, kind and token; every other column comes as [token, item].

    NaN becomes null.
    """
    schema = STORED[table]
    arrays: list[pa.Array] = [
        pa.array(np.full(tokens, example, np.int32)),
        pa.array([kind] * tokens, pa.string()),
        pa.array(np.arange(tokens, dtype=np.int32)),
    ]
    arrays += [lists(columns[field.name], field.type) for field in list(schema)[3:]]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def lists(values: NDArray[Any], kind: pa.ListType) -> pa.ListArray:
    """A column of lists from [row, item]; NaN becomes null."""
    offsets = pa.array(np.arange(len(values) + 1, dtype=np.int32) * values.shape[1])
    flat = np.ascontiguousarray(values, kind.value_type.to_pandas_dtype()).ravel()
    return pa.ListArray.from_arrays(offsets, pa.array(flat, from_pandas=True), type=kind)
