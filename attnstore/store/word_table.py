"""This file is the virtual table `word_attention`: weights between words, computed while DuckDB scans it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import NotStored
from attnstore.reduce.pieces import pieces_of
from attnstore.reduce.words import word_map
from attnstore.store.attention_table import BATCH_ROWS, SCHEMA, Produce, chosen_places
from attnstore.store.cells import Cells
from attnstore.store.frames import Frames
from attnstore.store.places import Places, PlaceTable
from attnstore.store.rectangles import Head, by_kind, head_numbers, rectangles


def word_attention_rows(cells: Cells, places: PlaceTable, frames: Frames) -> Produce:
    """What produces the rows of `word_attention`: words that have tokens, no special tokens, not renormalised."""

    def produce(
        heads: Sequence[Head], examples: NDArray[np.int64] | None, wanted: set[str]
    ) -> Iterator[pa.RecordBatch]:
        if cells.topk and heads:
            raise NotStored(
                "reading word_attention",
                f"this store kept the {cells.topk} largest weights of a row",
                "every weight, which a sum over the pieces of a word needs",
                "Ask `attention` for what is known of tokens",
            )
        schema = pa.schema([field for field in SCHEMA if field.name in wanted])
        for kind, pairs in by_kind(heads).items():
            for place in chosen_places(places, kind, examples):
                for block in place.blocks(whole=True):
                    yield from _batches(_block(cells, frames, block, pairs), schema, kind)

    return produce


def _block(
    cells: Cells, frames: Frames, block: Places, pairs: Sequence[tuple[int, int]]
) -> Iterator[dict[str, NDArray[Any]]]:
    """The columns of each example of a block in turn, heads after one another."""
    for rectangle in rectangles(pairs, block.stop - block.start):
        span = slice(block.start, block.stop)
        weights = cells.weights(block.segment, block.kind, rectangle.layer, rectangle.head, span)
        weights = weights.reshape(-1, weights.shape[2])
        layers, heads = head_numbers(rectangle)
        for run in range(len(block)):
            example, rows, width = (int(column[run]) for column in (block.example, block.n_rows, block.n_keys))
            start = int(block.cell[run]) - block.start
            frame = frames.frame(block.segment, block.kind, example)
            own = word_map(weights[:, start : start + rows * width].reshape(-1, rows, width), frame)
            # Words without tokens have no row and no column.
            queries, keys = pieces_of(frame.queries).word, pieces_of(frame.keys).word
            n = len(queries) * len(keys)
            yield {
                "example": np.full(n * len(heads), example, np.int32),
                "layer": np.repeat(layers, n),
                "head": np.repeat(heads, n),
                "query": np.tile(np.repeat(queries.astype(np.int32), len(keys)), len(heads)),
                "key": np.tile(keys.astype(np.int32), len(queries) * len(heads)),
                "weight": own[:, queries[:, None], keys].astype(np.float32, copy=False).reshape(-1),
            }


def _batches(parts: Iterator[dict[str, NDArray[Any]]], schema: pa.Schema, kind: str) -> Iterator[pa.RecordBatch]:
    """Join the columns of several examples into batches of BATCH_ROWS rows or more."""
    held: list[dict[str, NDArray[Any]]] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += len(part["example"])
        if rows >= BATCH_ROWS:
            yield _joined(held, schema, kind, rows)
            held, rows = [], 0
    if held:
        yield _joined(held, schema, kind, rows)


def _joined(held: list[dict[str, NDArray[Any]]], schema: pa.Schema, kind: str, rows: int) -> pa.RecordBatch:
    arrays = [
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([kind]))
        if name == "kind"
        else pa.array(np.concatenate([part[name] for part in held]))
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
