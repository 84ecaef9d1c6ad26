"""This file gathers the facts of one batch, layer by layer, into rows of the fact tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.format.fact_tables import COMPUTED, MEASURED
from attnstore.format.manifest import Kind
from attnstore.format.tables import HEAD_FACTS, TABLES, TOKEN_FACTS, TOKEN_MASSES, WORD_FACTS
from attnstore.job.rows import Placed
from attnstore.reduce.columns import Columns
from attnstore.reduce.facts import Facts
from attnstore.reduce.token_masses import TokenMasses

_TOKEN = [field.name for field in TOKEN_FACTS][3:]
_MASS = [field.name for field in TOKEN_MASSES][3:]
_WORD = [field.name for field in WORD_FACTS][3:]
_HEAD = [field.name for field in HEAD_FACTS][4:]
_DTYPES: Mapping[pa.DataType, np.dtype[Any]] = {
    pa.int32(): np.dtype(np.int32),
    pa.float16(): np.dtype(np.float16),
    pa.float64(): np.dtype(np.float64),
}


class BatchFacts:
    """The facts of one kind over one batch: arrays [row, layer, head], filled by `take`, given by `tables`."""

    def __init__(self, kind: str, shape: Kind, batch: Sequence[Placed], *, masses: bool = False) -> None:
        self.kind, self.shape = kind, shape
        self.batch = [item for item in batch if kind in item.frames]
        self.tokens = [len(item.frames[kind].queries) for item in self.batch]
        self.words = [item.frames[kind].queries.n_words for item in self.batch]
        heads = (shape.layers, shape.heads)
        self._token = {name: np.zeros((sum(self.tokens), *heads), _item(TOKEN_FACTS, name)) for name in _TOKEN}
        mass = _MASS if masses else []
        self._mass = {name: np.zeros((sum(self.tokens), *heads), _item(TOKEN_MASSES, name)) for name in mass}
        self._word = {name: np.zeros((sum(self.words), *heads), _item(WORD_FACTS, name)) for name in _WORD}
        self._head = {name: np.zeros((len(self.batch), *heads)) for name in _HEAD}

    def take(self, layers: slice, facts: Sequence[Facts], masses: Sequence[TokenMasses] = ()) -> None:
        """Take the facts of some layers, and the masses if they are kept, one for each example of the batch, in order.

        Their head axis runs over the heads of these layers, layer-major.
        """

        def spread(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
            # [layer and head, row] of each example -> [row, layer, head] of the batch
            joined = np.concatenate(columns, axis=1).T
            return joined.reshape(len(joined), layers.stop - layers.start, self.shape.heads)

        for name, column in self._token.items():
            column[:, layers] = spread([item.tokens[name] for item in facts])
        for name, column in self._word.items():
            column[:, layers] = spread([item.words[name] for item in facts])
        for name, column in self._mass.items():
            column[:, layers] = spread([item[name] for item in masses])
        for name, column in self._head.items():
            column[:, layers] = np.reshape([item.heads[name] for item in facts], column[:, layers].shape)

    def tables(self) -> dict[str, pa.RecordBatch]:
        """One batch of rows for each fact table."""
        numbers = np.array([item.number for item in self.batch], np.int32)
        token = self._listed("token_facts", numbers, self.tokens, self._token)
        word = self._listed("word_facts", numbers, self.words, self._word)
        layers, heads = self.shape.layers, self.shape.heads
        per_example = layers * heads
        columns: list[pa.Array] = [
            pa.array(np.repeat(numbers, per_example)),
            pa.array([self.kind] * (len(numbers) * per_example), pa.string()),
            pa.array(np.tile(np.repeat(np.arange(layers, dtype=np.int16), heads), len(numbers))),
            pa.array(np.tile(np.arange(heads, dtype=np.int16), len(numbers) * layers)),
        ]
        columns += [pa.array(self._head[name].ravel(), from_pandas=True) for name in _HEAD]  # NaN is null
        masses = {}
        if self._mass:
            masses["token_masses"] = self._listed("token_masses", numbers, self.tokens, self._mass)
        return {
            **masses,
            "token_facts": token,
            "word_facts": word,
            "head_facts": pa.RecordBatch.from_arrays(columns, schema=HEAD_FACTS),
        }

    def _listed(
        self, table: str, numbers: NDArray[np.int32], counts: list[int], values: Mapping[str, NDArray[Any]]
    ) -> pa.RecordBatch:
        schema, rows, width = TABLES[table], sum(counts), self.shape.layers * self.shape.heads
        index = np.concatenate([np.arange(count, dtype=np.int32) for count in counts] or [np.zeros(0, np.int32)])
        columns: list[pa.Array] = [
            pa.array(np.repeat(numbers, counts)),
            pa.array([self.kind] * rows, pa.string()),
            pa.array(index),
        ]
        offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
        for name in schema.names[3:]:
            flat = values[name].reshape(-1)
            absent = flat < 0 if flat.dtype == np.int32 else None
            items = pa.array(flat, mask=absent if absent is not None and absent.any() else None)
            columns.append(pa.ListArray.from_arrays(offsets, items, type=schema.field(name).type))
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def distance_row(number: int, kind: str, found: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    """The row of `head_distances` for one example."""
    schema = COMPUTED["head_distances"]
    js = pa.ListArray.from_arrays(pa.array([0, found["js"].size], pa.int32()), pa.array(found["js"].ravel()))
    columns = [pa.array([number], pa.int32()), pa.array([kind]), pa.array(found["n_rows"]), js]
    arrays = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def kept_rows(found: Mapping[tuple[int, str, int], Columns]) -> pa.RecordBatch:
    """The rows of `kept_facts`: for each example, kind and layer the columns from `head` on, each [kept head]."""
    schema, keys = MEASURED["kept_facts"], sorted(found)
    counts = [len(found[key]["head"]) for key in keys]
    columns: list[Any] = [np.repeat(np.array(part), counts) for part in zip(*keys, strict=True)]
    columns += [np.concatenate([found[key][name] for key in keys]) for name in schema.names[3:]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _item(schema: pa.Schema, name: str) -> np.dtype[Any]:
    dtype: np.dtype[Any] = _DTYPES[schema.field(name).type.value_type]
    return dtype
