"""This file fills a fact table from the maps of a store, a block of examples at a time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

from attnstore.errors import NotStored
from attnstore.format.manifest import Kind
from attnstore.reduce.norms import norm_maps
from attnstore.store.fact import CHOOSING, WEIGHTS, Fact
from attnstore.store.facts import FACTS
from attnstore.store.known_lists import KnownLists
from attnstore.store.known_rows import KnownRows, named
from attnstore.store.places import BLOCK_CELLS, PlaceTable
from attnstore.store.rectangles import READ_CELLS, Rectangle, rectangles

if TYPE_CHECKING:
    from attnstore.store.engine import Engine
    from attnstore.store.places import Places

INGEST = "Ingest again with [keep] {}, which needs the model"
_KEPT_BY = {"head_distances": 'distances = "sampled" or "full"', "token_masses": 'facts = "full"'}
"""What keeps a table at ingest that is not kept by default."""


def compute(
    engine: "Engine", table: str, params: Mapping[str, object], doing: str, places: PlaceTable | None = None
) -> pa.Table:
    """A fact table of the whole store, or of the examples of `places`, reduced from its maps; see `batches`."""
    return pa.concat_tables([FACTS[table].schema.empty_table(), *batches(engine, table, params, doing, places)])


def batches(
    engine: "Engine", table: str, params: Mapping[str, object], doing: str, places: PlaceTable | None = None
) -> Iterator[pa.Table]:
    """The rows of a fact table, some examples at a time and segment by segment; see `Filling`."""
    filling = Filling(engine, table, params, doing, places)
    what = ", ".join(f"{name}={value}" for name, value in filling.values.items() if value is not None)
    with tqdm(
        total=sum(map(filling.count, filling.segments)),
        desc=f"{table}({what})",
        unit=" examples",
        disable=None,
        leave=False,
    ) as progress:
        for segment in filling.segments:
            for block in filling.blocks(segment):
                yield filling.table(block)
                progress.update(len(block))


class Filling:
    """A fact table that is filled from the maps of a store, or of the examples of `places`.

    Segments can be filled apart: the blocks of all, one segment after the other, are those of the whole. NotStored
    where the maps that were kept do not suffice. Tables with a row for each head have rows of the kept layers and heads
    only; the others need all of them.
    """

    def __init__(
        self,
        engine: "Engine",
        table: str,
        params: Mapping[str, object],
        doing: str,
        places: PlaceTable | None = None,
    ) -> None:
        self._engine, self._fact, self._doing = engine, FACTS[table], doing
        fact, info = self._fact, engine.contents.info
        self.values = {**fact.defaults, **params}
        elsewhere = {*CHOOSING, WEIGHTS, *named(fact.rows)}
        self._own = {name: value for name, value in self.values.items() if name not in elsewhere}
        kinds = [name for name, shape in info.kinds.items() if fact.cross or shape.queries == shape.keys]
        _check_kept(engine, fact, table, self.values, kinds, doing)
        norm = self.values.get(WEIGHTS) == "norm"
        self._norms = KnownLists(engine.database, "value_norms", doing) if norm else None
        self._lists = None if fact.evidence is None else KnownLists(engine.database, fact.evidence, doing)
        self._known: dict[str, KnownRows] = {}
        self._places: dict[int, list[Places]] = {}
        found = _chosen(engine.places if places is None else places, self.values, kinds)
        for kind in kinds:
            for place in found.of(kind):
                self._places.setdefault(place.segment, []).append(place)

    @property
    def segments(self) -> list[int]:
        """The segments that hold maps to be read, in order."""
        return sorted(self._places)

    def count(self, segment: int) -> int:
        """Maps of one head that are read of a segment: its examples, once for each kind."""
        return sum(map(len, self._places[segment]))

    def blocks(self, segment: int) -> Iterator["Places"]:
        """What is read of a segment at a time: whole examples of one kind, by kind in the order of the store."""
        for place in self._places[segment]:
            shape = self._engine.contents.info.kinds[place.kind]
            yield from place.blocks(_block_cells(self._fact, shape), whole=True)

    def table(self, block: "Places") -> pa.Table:
        """The rows of the examples of a block."""
        if block.kind not in self._known:
            side = {"side": self._engine.contents.info.kinds[block.kind].queries}
            database, values = self._engine.database, self.values | side
            self._known[block.kind] = KnownRows(database, self._fact.rows, values, self._doing)
        known = self._known[block.kind]
        return _Block(self._engine, self._fact, self._own, known, block, self._norms, self._lists).table()


def _block_cells(fact: Fact, shape: Kind) -> int:
    """Cells of one block; where all heads are read at once, each head's share of them."""
    return READ_CELLS // (shape.layers * shape.heads) if fact.by == "example" else BLOCK_CELLS


def _check_kept(
    engine: "Engine", fact: Fact, table: str, values: Mapping[str, object], kinds: Sequence[str], doing: str
) -> None:
    info = engine.contents.info
    stored = engine.files.parameters(table)
    what = f"{table}({', '.join(f'{name}={value}' for name, value in values.items())})"
    found = f"this store kept {table} with {dict(stored)}" if stored is not None else f"this store kept no {table}"
    instead = f"{_KEPT_BY[table]}, or " if table in _KEPT_BY and stored is None else ""
    if info.kept.maps != "all":
        maps = "no maps" if info.kept.maps == "none" else f"only the {info.kept.topk} largest weights of a row"
        raise NotStored(doing, f"{found}, and {maps}", what, INGEST.format(instead + 'maps = "all"'))
    for kind in kinds:
        layers, heads = engine.cells.kept(kind)
        shape = info.kinds[kind]
        if fact.by != "head" and len(layers) * len(heads) < shape.layers * shape.heads:
            there = f"the maps of layers {layers} and heads {heads} only"
            raise NotStored(doing, f"{found}, and {there}", what, INGEST.format(instead + "layers and heads left out"))


def _chosen(places: PlaceTable, values: Mapping[str, object], kinds: Sequence[str]) -> PlaceTable:
    """The places that the parameters `example` and `sample` leave over."""
    example, sample = (cast("int | None", values.get(name)) for name in CHOOSING)
    if example is not None:
        return places.only(np.array([example]))
    if sample is None:
        return places
    held = [place.example for kind in kinds for place in places.of(kind)]
    every = np.unique(np.concatenate(held)) if held else np.zeros(0, np.int64)
    if sample <= 0 or sample >= len(every):
        return places
    return places.only(every[np.linspace(0, len(every) - 1, sample).round().astype(int)])


class _Block:
    """The rows of one fact table for the examples of one block of cells."""

    def __init__(
        self,
        engine: "Engine",
        fact: Fact,
        params: Mapping[str, object],
        known: KnownRows,
        block: "Places",
        norms: KnownLists | None,
        lists: KnownLists | None,
    ) -> None:
        self.engine, self.fact, self.params, self.known, self.block = engine, fact, params, known, block
        self.shape = engine.contents.info.kinds[block.kind]
        self.frames = [engine.frames.frame(block.segment, block.kind, number) for number in block.example.tolist()]
        examples = block.example.tolist()
        self.rows = [known.of(number) for number in examples]
        keys, layers = [len(frame.keys) for frame in self.frames], self.shape.layers
        if lists is not None:
            beside = lists.of(block.kind, examples, [layers * n for n in keys])
            self.rows = [own | more for own, more in zip(self.rows, beside, strict=True)]
        self.norms: list[NDArray[np.float32]] | None = None  # [key, layer, head] of each example
        if norms is not None:
            found = norms.of(block.kind, examples, keys)
            self.norms = [own["value_norm"].reshape(-1, layers, self.shape.heads) for own in found]

    def table(self) -> pa.Table:
        """One row for each head, or for each row that the reduction gives."""
        if self.fact.by == "example":
            return self._by_example()
        columns = self._reduced()
        return self._by_head(columns) if self.fact.by == "head" else self._by_row(columns)

    def _reduced(self) -> list[dict[str, NDArray[Any]]]:
        """For each example its columns; what differs by head as [..., layer, head] or [row, layer, head]."""
        found: list[dict[str, NDArray[Any]]] = [{} for _ in self.frames]
        layers, heads = self.engine.cells.kept(self.block.kind)
        pairs = [(layer, head) for layer in layers for head in heads]
        for part in rectangles(pairs, self.block.stop - self.block.start):
            for index, maps in enumerate(self.engine.cells.maps(self.block, part)):
                stacked = self._weighed(maps, index, part).reshape(-1, *maps.shape[2:])
                columns = self.fact.reduce(stacked, self.frames[index], self.rows[index], **self.params)
                for name, value in columns.items():
                    if name in self.fact.keys:
                        found[index][name] = value
                        continue
                    # [head of the rectangle, …] to […, layer, head]
                    spread = np.moveaxis(value.reshape(*part.shape, *value.shape[1:]), (0, 1), (-2, -1))
                    if name not in found[index]:
                        shape = (*spread.shape[:-2], self.shape.layers, self.shape.heads)
                        found[index][name] = np.zeros(shape, value.dtype)
                    found[index][name][..., part.layer, part.head] = spread
        return found

    def _weighed(self, maps: NDArray[np.float32], index: int, part: Rectangle) -> NDArray[np.float32]:
        """The maps [layer, head, query, key] of an example, each weight times its key's norm where norms are asked."""
        if self.norms is None:
            return maps
        norms = self.norms[index][:, part.layer, part.head].transpose(1, 2, 0)
        return norm_maps(maps, norms, shares=self.fact.shares)

    def _by_head(self, columns: Sequence[Mapping[str, NDArray[Any]]]) -> pa.Table:
        layers, heads = self.engine.cells.kept(self.block.kind)
        each, n = len(layers) * len(heads), len(self.frames)
        arrays = [
            *self._keys(np.full(n, each)),
            pa.array(np.tile(np.repeat(np.array(layers, np.int16), len(heads)), n)),
            pa.array(np.tile(np.array(heads, np.int16), n * len(layers))),
        ]
        for field in list(self.fact.schema)[len(arrays) :]:
            kept = [own[field.name][..., layers, :][..., heads] for own in columns]
            # [item, layer, head] to [layer, head, item]
            flat = [np.moveaxis(value, 0, -1).ravel() if value.ndim == 3 else value.ravel() for value in kept]
            arrays.append(_array(field, np.concatenate(flat), n * each))
        return pa.Table.from_arrays(arrays, schema=self.fact.schema)

    def _by_row(self, columns: Sequence[Mapping[str, NDArray[Any]]]) -> pa.Table:
        counts = [len(own[self.fact.keys[0]]) for own in columns]
        arrays = self._keys(np.array(counts, np.int64))
        for field in list(self.fact.schema)[len(arrays) :]:
            values = [own[field.name] for own in columns]
            arrays.append(_array(field, np.concatenate([value.ravel() for value in values]), sum(counts)))
        return pa.Table.from_arrays(arrays, schema=self.fact.schema)

    def _by_example(self) -> pa.Table:
        every = Rectangle(slice(0, self.shape.layers), slice(0, self.shape.heads))
        parts = [
            self.fact.reduce(maps, self.frames[index], self.rows[index], **self.params)
            for index, maps in enumerate(self.engine.cells.maps(self.block, every))
        ]
        fields = list(self.fact.schema)[2:]
        counts = np.array([len(part[fields[0].name]) for part in parts], np.int64)
        arrays = self._keys(counts)
        for field in fields:
            values = np.concatenate([np.asarray(part[field.name]).ravel() for part in parts])
            arrays.append(_array(field, values, int(counts.sum())))
        return pa.Table.from_arrays(arrays, schema=self.fact.schema)

    def _keys(self, counts: NDArray[np.int64]) -> list[pa.Array]:
        """The columns example and kind, where each example has so many rows."""
        numbers = np.repeat(self.block.example.astype(np.int32), counts)
        return [pa.array(numbers), pa.array([self.block.kind] * len(numbers), pa.string())]


def _array(field: pa.Field, flat: NDArray[Any], n_rows: int) -> pa.Array:
    """A column of `n_rows` from its values one after another; NaN, and -1 in a list of words, become null."""
    kind = field.type.value_type if pa.types.is_list(field.type) else field.type
    if pa.types.is_floating(kind):
        values = pa.array(flat.astype(kind.to_pandas_dtype(), copy=False), from_pandas=True)
    elif pa.types.is_list(field.type):
        flat = flat.astype(kind.to_pandas_dtype(), copy=False)
        values = pa.array(flat, mask=flat < 0 if flat.size and flat.min() < 0 else None)
    else:
        values = pa.array(flat.tolist() if flat.dtype == object else flat, kind)
    if not pa.types.is_list(field.type):
        return values
    width = len(flat) // n_rows if n_rows else 0
    offsets = pa.array(np.arange(n_rows + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(offsets, values, type=field.type)
