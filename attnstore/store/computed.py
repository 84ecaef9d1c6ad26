"""This file gives a question the facts that it needs: the stored ones where their parameters fit, else new ones."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

from attnstore.catalogue.question import Question
from attnstore.errors import BadQuestion, NotStored
from attnstore.format.tables import TABLES
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.head_facts import head_facts
from attnstore.reduce.token_facts import token_facts
from attnstore.reduce.token_masses import token_masses
from attnstore.reduce.word_facts import word_facts
from attnstore.store.database import Database
from attnstore.store.parquet_files import FACT_TABLES
from attnstore.store.places import Places
from attnstore.store.rectangles import rectangles

if TYPE_CHECKING:
    from attnstore.store.engine import Engine

DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "head_facts": {"eps": 1e-4, "drop": "sep"},
    "token_facts": {},
    "token_masses": {},
    "word_facts": {"pieces": "mean"},
}
"""The parameters of each reduction, and what they are unless a question asks for another value."""

_REDUCTIONS: Mapping[str, Callable[..., Mapping[str, NDArray[Any]]]] = {
    "head_facts": head_facts,
    "token_facts": token_facts,
    "token_masses": token_masses,
    "word_facts": word_facts,
}
_HELD = 4
_DTYPES = {pa.int32(): np.int32, pa.float16(): np.float16, pa.float64(): np.float64}

Wanted = tuple[tuple[str, tuple[tuple[str, object], ...]], ...]


class Computed:
    """The databases that answer questions: the store's own, and the last few in which facts were computed anew."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._held: OrderedDict[Wanted, Database] = OrderedDict()
        self._lock = threading.Lock()

    def database(self, question: Question, values: Mapping[str, object]) -> Database:
        """Where the question can be answered. NotStored where that needs maps which were not kept."""
        wanted = self._wanted(question, values)
        if not wanted:
            return self._engine.database
        # One at a time: eight threads that ask the same must not reduce the same maps eight times.
        with self._lock:
            if wanted not in self._held:
                doing = f"asking {question.name}"
                tables = {table: compute(self._engine, table, dict(params), doing) for table, params in wanted}
                self._held[wanted] = self._engine.replacing(tables)
                while len(self._held) > _HELD:
                    self._held.popitem(last=False)
            self._held.move_to_end(wanted)
            return self._held[wanted]

    def close(self) -> None:
        """Close what is held."""
        with self._lock:
            for database in self._held.values():
                database.close()
            self._held.clear()

    def _wanted(self, question: Question, values: Mapping[str, object]) -> Wanted:
        """The tables to compute, with their parameters."""
        maps = self._engine.contents.info.kept.maps
        found = []
        for read in question.reads:
            if read.table in ("attention", "word_attention") and maps == "none":
                raise NotStored(
                    f"asking {question.name}", "this store kept facts, no maps", "maps", _INGEST.format('maps = "all"')
                )
            if read.table not in FACT_TABLES:
                continue
            params = read.wanted(values)
            if unknown := set(params) - set(DEFAULTS[read.table]):
                raise BadQuestion(
                    f"reading {question.path}",
                    f"{read.table} has no parameter {sorted(unknown)[0]!r}",
                    f"among {', '.join(DEFAULTS[read.table]) or 'none'}",
                )
            stored = self._engine.files.parameters(read.table)
            if stored is None or any(not _same(stored.get(name), value) for name, value in params.items()):
                known = {name: value for name, value in (stored or {}).items() if name in DEFAULTS[read.table]}
                merged = {**DEFAULTS[read.table], **known, **params}
                found.append((read.table, tuple(sorted(merged.items()))))
        return tuple(sorted(found))


_INGEST = "Ingest again with [keep] {}"


def _same(stored: object, wanted: object) -> bool:
    if isinstance(stored, int | float) and isinstance(wanted, int | float):
        return math.isclose(stored, wanted, rel_tol=1e-9)
    return stored == wanted


def compute(engine: "Engine", table: str, params: Mapping[str, object], doing: str) -> pa.Table:
    """A fact table of the whole store, reduced from its maps; NotStored where they do not suffice.

    `head_facts` has rows of the kept layers and heads only; the others need all of them.
    """
    info, cells = engine.contents.info, engine.cells
    known = engine.files.parameters(table)
    what = ", ".join(f"{name}={value}" for name, value in params.items())
    found = (
        f"this store kept {table} with {dict(known)}, and" if known is not None else f"this store kept no {table}, and"
    )
    if info.kept.maps != "all":
        maps = "no maps" if info.kept.maps == "none" else f"only the {info.kept.topk} largest weights of a row"
        raise NotStored(doing, f"{found} {maps}", f"{table}({what})", _INGEST.format('maps = "all"'))
    for kind, shape in info.kinds.items():
        layers, heads = cells.kept(kind)
        if table != "head_facts" and len(layers) * len(heads) < shape.layers * shape.heads:
            there = f"the maps of layers {layers} and heads {heads} only"
            raise NotStored(doing, f"{found} {there}", f"{table}({what})", _INGEST.format("layers and heads left out"))
    parts = [TABLES[table].empty_table()]
    places = [place for kind in info.kinds for place in engine.places.of(kind)]
    with tqdm(
        total=sum(map(len, places)), desc=f"{table}({what})", unit=" examples", disable=None, leave=False
    ) as progress:
        for place in places:
            for block in place.blocks(whole=True):
                parts.append(_block(engine, table, params, block))
                progress.update(len(block))
    return pa.concat_tables(parts)


def _block(engine: "Engine", table: str, params: Mapping[str, object], block: Places) -> pa.Table:
    """The rows of a fact table for the examples of one block."""
    shape, schema = engine.contents.info.kinds[block.kind], TABLES[table]
    reduction = _REDUCTIONS[table]
    frames = [engine.frames.frame(block.segment, block.kind, number) for number in block.example.tolist()]
    rows = [_rows(table, frame) for frame in frames]
    starts = np.cumsum([0, *rows])
    names = schema.names[4:] if table == "head_facts" else schema.names[3:]
    columns = {name: np.zeros((starts[-1], shape.layers, shape.heads), _dtype(schema, name)) for name in names}
    layers, heads = engine.cells.kept(block.kind)
    for rectangle in rectangles([(layer, head) for layer in layers for head in heads], block.stop - block.start):
        span = slice(block.start, block.stop)
        weights = engine.cells.weights(block.segment, block.kind, rectangle.layer, rectangle.head, span)
        for index, frame in enumerate(frames):
            first = int(block.cell[index]) - block.start
            own = weights[..., first : first + int(block.sizes[index])]
            maps = cast(FloatArray, own.reshape(-1, len(frame.queries), len(frame.keys)))
            facts = reduction(maps, frame, **params)
            into = slice(starts[index], starts[index + 1])
            for name, column in columns.items():
                # [head of the rectangle, row] to [row, layer, head]
                values = facts[name].reshape(*rectangle.shape, -1)
                column[into, rectangle.layer, rectangle.head] = np.moveaxis(values, -1, 0)
    if table == "head_facts":
        columns = {name: column[:, layers][:, :, heads] for name, column in columns.items()}
        return _head_rows(block, layers, heads, columns)
    return _list_rows(block, rows, columns, schema)


def _rows(table: str, frame: Frame) -> int:
    if table == "head_facts":
        return 1
    return frame.queries.n_words if table == "word_facts" else len(frame.queries)


def _head_rows(block: Places, layers: list[int], heads: list[int], columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    schema, n = TABLES["head_facts"], len(block)
    arrays = [
        pa.array(np.repeat(block.example.astype(np.int32), len(layers) * len(heads))),
        pa.array([block.kind] * (n * len(layers) * len(heads)), pa.string()),
        pa.array(np.tile(np.repeat(np.array(layers, np.int16), len(heads)), n)),
        pa.array(np.tile(np.array(heads, np.int16), n * len(layers))),
    ]
    arrays += [pa.array(column.ravel(), from_pandas=True) for column in columns.values()]  # NaN is null
    return pa.Table.from_arrays(arrays, schema=schema)


def _list_rows(block: Places, rows: list[int], columns: Mapping[str, NDArray[Any]], schema: pa.Schema) -> pa.Table:
    index = np.concatenate([np.arange(count, dtype=np.int32) for count in rows])
    arrays = [
        pa.array(np.repeat(block.example.astype(np.int32), rows)),
        pa.array([block.kind] * len(index), pa.string()),
        pa.array(index),
    ]
    for name, column in columns.items():
        flat = column.reshape(-1)
        offsets = pa.array(np.arange(len(index) + 1, dtype=np.int32) * (column.shape[1] * column.shape[2]))
        # -1 says that there is no such word.
        items = pa.array(flat, mask=flat < 0 if flat.dtype == np.int32 else None)
        arrays.append(pa.ListArray.from_arrays(offsets, items, type=schema.field(name).type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _dtype(schema: pa.Schema, name: str) -> Any:
    kind = schema.field(name).type
    return _DTYPES[kind.value_type if pa.types.is_list(kind) else kind]
