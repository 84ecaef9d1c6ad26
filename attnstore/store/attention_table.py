"""This file is the virtual table `attention`: one row for each stored weight, read from Zarr while DuckDB scans it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray

from attnstore.errors import AttnStoreError
from attnstore.store.cells import NO_KEY, Cells
from attnstore.store.layout import CELL_COLUMNS
from attnstore.store.places import Places, PlaceTable
from attnstore.store.pruning import Chosen, Pruning, columns_of
from attnstore.store.rectangles import Head, by_kind, head_numbers, rectangles

BATCH_ROWS = 2**16
"""Short blocks of several heads are joined into batches of about this many rows."""

SCAN_CELLS = 2**21
"""Cells of one block of a head: at its ends lie chunks of which the next block needs the rest."""

SCAN_READ = 2**21
"""Cells that are read at a time, over heads."""

_AHEAD = 2

SCHEMA = CELL_COLUMNS.set(CELL_COLUMNS.get_field_index("kind"), pa.field("kind", pa.dictionary(pa.int8(), pa.string())))

Produce = Callable[[Sequence[Head], NDArray[np.int64] | None, set[str]], Iterator[pa.RecordBatch]]
"""Heads, example numbers (None for all) and the columns wanted, to batches of those columns of SCHEMA."""


class VirtualTable(ds.InMemoryDataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset without data, whose scans `produce` rows.

    DuckDB hands columns and a filter to `scanner` and does not apply the filter again, so the scanner applies all
    of it. This rests on how DuckDB calls a dataset: tests compare SQL with numpy. `heads` and `examples` limit what
    it shows; None for all.
    """

    def __init__(
        self,
        pruning: Pruning,
        produce: Produce,
        heads: frozenset[Head] | None = None,
        examples: NDArray[np.int64] | None = None,
    ) -> None:
        super().__init__(pa.Table.from_batches([], schema=SCHEMA))
        self._pruning, self._produce, self._limits = pruning, produce, (heads, examples)
        self.failure: AttnStoreError | None = None

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads that it has rows of."""
        every, chosen = self._pruning.chosen(None).heads, self._limits[0]
        return every if chosen is None else tuple(head for head in every if head in chosen)

    @property
    def n_maps(self) -> int:
        """Heads times examples."""
        examples = self._limits[1]
        return len(self.heads) * (self._pruning.n_examples if examples is None else len(examples))

    def only(self, heads: frozenset[Head] | None, examples: NDArray[np.int64] | None) -> "VirtualTable":
        """The same table without the rows of other heads and examples than these."""
        return VirtualTable(self._pruning, self._produce, heads, examples)

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - the name that DuckDB passes
        **options: Any,
    ) -> ds.Scanner:
        """A scanner over the heads and examples that the filter leaves over."""
        chosen = self._pruning.chosen(filter).only(*self._limits)
        wanted = set(SCHEMA.names if columns is None else columns)
        if chosen.decided:
            filter = None  # noqa: A001 - nothing is left of it
        wanted |= columns_of(filter, SCHEMA.names)
        schema = pa.schema([field for field in SCHEMA if field.name in wanted])
        reader = pa.RecordBatchReader.from_batches(schema, self._rows(chosen, wanted))
        # Read-ahead is bounded: a batch is some megabytes, and a LIMIT should not read sixteen of them.
        return ds.Scanner.from_batches(
            reader, columns=columns, filter=filter, batch_readahead=2, fragment_readahead=1, use_threads=True
        )

    def _rows(self, chosen: Chosen, wanted: set[str]) -> Iterator[pa.RecordBatch]:
        try:
            yield from _ahead(self._produce(chosen.heads, chosen.examples, wanted))
        except AttnStoreError as error:
            # DuckDB reports any error as its own; the caller finds the true one here.
            self.failure = error
            raise


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, made by a thread of their own while DuckDB works on those before; a few at most wait."""
    with ThreadPoolExecutor(1, "attnstore-scan") as thread:
        waiting = deque[Future[Any]](thread.submit(next, batches, None) for _ in range(_AHEAD))
        while (batch := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, batches, None))
            yield batch


def attention_rows(cells: Cells, places: PlaceTable) -> Produce:
    """What produces the rows of `attention`."""

    def produce(
        heads: Sequence[Head], examples: NDArray[np.int64] | None, wanted: set[str]
    ) -> Iterator[pa.RecordBatch]:
        for kind, pairs in by_kind(heads).items():
            for place in chosen_places(places, kind, examples):
                for block in place.blocks(SCAN_CELLS):
                    if cells.topk:
                        yield from _topk_block(cells, block, pairs, wanted)
                    else:
                        yield from _block(cells, block, pairs, wanted)

    return produce


def chosen_places(places: PlaceTable, kind: str, examples: NDArray[np.int64] | None) -> Iterator[Places]:
    """The places of a kind in each segment, only those of `examples` unless None."""
    for place in places.of(kind):
        found = place if examples is None else place[np.isin(place.example, examples)]
        if len(found):
            yield found


def _block(cells: Cells, block: Places, pairs: Sequence[tuple[int, int]], wanted: set[str]) -> Iterator[pa.RecordBatch]:
    """Batches of one block: the columns that all heads share are made once."""
    n = int(block.sizes.sum())
    shared = _Shared(block.kind, n, wanted, {})
    if wanted & {"example", "query", "key"}:
        example, query, key = block.coordinates()
        shared.columns.update(example=example, query=query, key=key)
    index = block.index()
    together = max(1, BATCH_ROWS // n)
    for rectangle in rectangles(pairs, block.stop - block.start, SCAN_READ):
        weights = None
        if "weight" in wanted:
            span = slice(block.start, block.stop)
            weights = cells.weights(block.segment, block.kind, rectangle.layer, rectangle.head, span)
            weights = weights.reshape(-1, weights.shape[2])
            if index is not None:
                weights = weights[:, index]
        layers, heads = head_numbers(rectangle)
        for start in range(0, len(layers), together):
            stop = min(start + together, len(layers))
            own = {} if weights is None else {"weight": weights[start:stop].reshape(-1)}
            yield shared.batch(layers[start:stop], heads[start:stop], own)


def _topk_block(
    cells: Cells, block: Places, pairs: Sequence[tuple[int, int]], wanted: set[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of one block of largest weights: which cells hold one, and for which key, differs by head."""
    example, query, _ = block.coordinates()
    index = block.index()
    span = slice(block.start, block.stop)
    for rectangle in rectangles(pairs, block.stop - block.start, SCAN_READ):
        where = (block.segment, block.kind, rectangle.layer, rectangle.head, span)
        keys = cells.keys(*where)
        keys = keys.reshape(-1, keys.shape[2])
        weights = cells.weights(*where).reshape(keys.shape) if "weight" in wanted else None
        for row, (layer, head) in enumerate(zip(*head_numbers(rectangle), strict=True)):
            key = keys[row] if index is None else keys[row][index]
            used = key != NO_KEY
            columns: dict[str, NDArray[Any]] = {"example": example[used], "query": query[used]}
            columns["key"] = key[used].astype(np.int32)
            if weights is not None:
                columns["weight"] = (weights[row] if index is None else weights[row][index])[used]
            shared = _Shared(block.kind, int(used.sum()), wanted, columns)
            yield shared.batch(np.array([layer], np.int16), np.array([head], np.int16), {})


class _Shared:
    """Columns of one head's rows, repeated for several heads; what was repeated before is used again."""

    def __init__(self, kind: str, n: int, wanted: set[str], columns: dict[str, NDArray[Any]]) -> None:
        self.kind, self.n, self.columns = kind, n, columns
        self.fields = [field for field in SCHEMA if field.name in wanted]
        self.schema = pa.schema(self.fields)
        self._repeated: dict[tuple[str, int], pa.Array] = {}

    def batch(
        self, layers: NDArray[np.int16], heads: NDArray[np.int16], own: dict[str, NDArray[Any]]
    ) -> pa.RecordBatch:
        """Rows of several heads, one head after the other; `own` are columns that differ by head."""
        arrays = []
        for field in self.fields:
            if field.name in own:
                arrays.append(pa.array(own[field.name], field.type))
            elif field.name == "layer":
                arrays.append(pa.array(np.repeat(layers, self.n)))
            elif field.name == "head":
                arrays.append(pa.array(np.repeat(heads, self.n)))
            else:
                arrays.append(self._shared(field.name, len(layers)))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _shared(self, name: str, times: int) -> pa.Array:
        if (name, times) not in self._repeated:
            if name == "kind":
                codes = pa.array(np.zeros(self.n * times, np.int8))
                self._repeated[name, times] = pa.DictionaryArray.from_arrays(codes, pa.array([self.kind]))
            else:
                column = self.columns[name]
                self._repeated[name, times] = pa.array(column if times == 1 else np.tile(column, times))
        return self._repeated[name, times]
