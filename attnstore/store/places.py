"""This file knows where the map of each example lies, and cuts what is asked for into runs of cells to read."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import Damaged
from attnstore.format.manifest import StoreInfo
from attnstore.format.names import KINDS
from attnstore.store.database import Database

BLOCK_CELLS = 2**18
"""Cells of one block: 1 MB of float32, which the coordinate columns of all heads share."""

GAP_CELLS = 2**16
"""Cells that are read and thrown away rather than starting a new block: one inner chunk."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Places:
    """Rows of the maps of one kind in one segment, in the order of their cells; arrays [run].

    A run is `n_rows` query rows of one example, from `first_row`, each of `n_keys` cells, from `cell`. In a store of
    the largest weights only, a row has as many cells as were kept.
    """

    segment: int
    kind: str
    example: Numbers
    first_row: Numbers
    n_rows: Numbers
    n_keys: Numbers
    cell: Numbers

    def __len__(self) -> int:
        return len(self.example)

    def __getitem__(self, index: slice | NDArray[np.bool_]) -> "Places":
        columns = (self.example, self.first_row, self.n_rows, self.n_keys, self.cell)
        return Places(self.segment, self.kind, *(column[index] for column in columns))

    @property
    def sizes(self) -> Numbers:
        """Cells of each run."""
        return self.n_rows * self.n_keys

    @property
    def start(self) -> int:
        """First cell of the first run."""
        return int(self.cell[0])

    @property
    def stop(self) -> int:
        """End of the last run, exclusive."""
        return int(self.cell[-1] + self.sizes[-1])

    def blocks(self, cells: int = BLOCK_CELLS, *, whole: bool = False) -> Iterator["Places"]:
        """Blocks of about `cells` cells at most; a longer example is cut by rows, or stays `whole`."""
        places = self if whole else _cut(self, cells)
        stops = places.cell + places.sizes
        first = 0
        while first < len(places):
            last = max(int(np.searchsorted(stops, places.cell[first] + cells, side="right")), first + 1)
            gaps = np.flatnonzero(places.cell[first + 1 : last] - stops[first : last - 1] > GAP_CELLS)
            last = first + 1 + int(gaps[0]) if gaps.size else last
            yield places[first:last]
            first = last

    def index(self) -> Numbers | None:
        """Which cells from `start` belong to the runs; None for all, without a gap."""
        sizes = self.sizes
        if int(sizes.sum()) == self.stop - self.start:
            return None
        ends = np.cumsum(sizes)
        return np.repeat(self.cell - self.start - (ends - sizes), sizes) + np.arange(ends[-1])

    def coordinates(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Example, query row and position within the row of every cell of the runs."""
        sizes, rows = self.sizes, self.n_rows
        row_size = np.repeat(self.n_keys, rows)
        row_end, run_end = np.cumsum(row_size), np.cumsum(rows)
        row = np.arange(len(row_size)) + np.repeat(self.first_row - (run_end - rows), rows)
        example = np.repeat(self.example.astype(np.int32), sizes)
        query = np.repeat(row.astype(np.int32), row_size)
        key = np.arange(len(example), dtype=np.int32) - np.repeat((row_end - row_size).astype(np.int32), row_size)
        return example, query, key


def _cut(places: Places, cells: int) -> Places:
    if not len(places) or int(places.sizes.max()) <= cells:
        return places
    rows = np.maximum(cells // np.maximum(places.n_keys, 1), 1)
    pieces = -(-places.n_rows // rows)
    which = np.repeat(np.arange(len(places)), pieces)
    number = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    skipped = number * rows[which]
    return Places(
        places.segment,
        places.kind,
        places.example[which],
        places.first_row[which] + skipped,
        np.minimum(rows[which], places.n_rows[which] - skipped),
        places.n_keys[which],
        places.cell[which] + skipped * places.n_keys[which],
    )


class PlaceTable:
    """Every place of a store, by kind and segment; `examples` are the numbers, ascending, `names` beside them."""

    def __init__(self, info: StoreInfo, database: Database) -> None:
        text = f"""
            select example, name, segment, n_tokens as source, n_target_tokens as target,
                {", ".join(f"cell_{kind} as {kind}" for kind in KINDS)}
            from stored.examples order by example
        """
        table = database.run(text, doing="reading where the maps lie")
        self.names = table["name"]
        columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names if name != "name"}
        self.examples: Numbers = columns["example"].astype(np.int64)
        if len(self.examples) > 1 and int(np.diff(self.examples).min()) < 1:
            raise Damaged("reading where the maps lie", "an example number that comes twice", "each number once")
        self._by_kind: dict[str, tuple[Places, ...]] = {}
        for name, kind in info.kinds.items():
            cell = columns[name]  # float with NaN where an example has no map of this kind
            held = ~np.isnan(cell.astype(np.float64))
            queries, keys = (columns[side].astype(np.float64) for side in (kind.queries, kind.keys))
            width = np.full(len(cell), info.kept.topk) if info.kept.topk else keys
            held &= ~np.isnan(queries) & ~np.isnan(width.astype(np.float64))
            self._by_kind[name] = tuple(
                self._segment(int(segment), name, held & (columns["segment"] == segment), queries, width, cell)
                for segment in np.unique(columns["segment"][held])
            )

    def of(self, kind: str) -> tuple[Places, ...]:
        """The places of a kind, one for each segment that has any."""
        return self._by_kind.get(kind, ())

    def only(self, examples: Numbers) -> "PlaceTable":
        """The places of these examples alone."""
        chosen = copy(self)
        among = np.isin(self.examples, examples)
        chosen.examples, chosen.names = self.examples[among], self.names.filter(among)
        kept = {kind: [place[np.isin(place.example, examples)] for place in own] for kind, own in self._by_kind.items()}
        chosen._by_kind = {kind: tuple(place for place in own if len(place)) for kind, own in kept.items()}
        return chosen

    def find(self, kind: str, example: int) -> Places | None:
        """The place of one example's map; None where it has none."""
        for places in self.of(kind):
            index = np.flatnonzero(places.example == example)
            if index.size:
                return places[slice(int(index[0]), int(index[0]) + 1)]
        return None

    def _segment(
        self,
        segment: int,
        kind: str,
        held: NDArray[np.bool_],
        queries: NDArray[np.float64],
        width: NDArray[np.float64],
        cell: NDArray[np.float64],
    ) -> Places:
        # Run order is that of the cells; nothing else is promised.
        order = np.flatnonzero(held)[np.argsort(cell[held], kind="stable")]
        columns = (np.asarray(column)[order].astype(np.int64) for column in (queries, width, cell))
        n_rows, n_keys, first = columns
        if len(first) and min(n_rows.min(), n_keys.min(), first.min() + 1) < 1:
            raise Damaged("reading where the maps lie", f"a map of less than nothing in segment {segment}", "cells")
        return Places(segment, kind, self.examples[order], np.zeros(len(order), np.int64), n_rows, n_keys, first)
