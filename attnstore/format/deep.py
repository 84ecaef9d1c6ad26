"""This file checks the maps of a segment against its tables: shapes, codecs, offsets, and on request every row."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.ahead import Ahead
from attnstore.format.declared import Guarded, open_array
from attnstore.format.deep_facts import LargestWeights
from attnstore.format.limits import ROWS_PER_BYTE
from attnstore.format.manifest import Kind, StoreInfo, Unit, load
from attnstore.format.quantise import PRECISIONS, Precision

SOFTMAX_ERROR = 1e-3
"""Row sums may be off by this beyond rounding: weights computed in half precision come so."""

NO_KEY = 2**32 - 1
"""The key in a place of a row that has fewer keys than are kept."""

BLOCK_CELLS = 2**22
"""Cells, over all heads, that are decoded at a time; of one head a sixteenth of it at most, a few chunks."""

Broken = tuple[str, str, str]
"""Rule, file, what was found."""

Owned = tuple[int, int, int, int, int]
"""First cell of an example, its queries, the cells of a row, its keys, its number."""


def check_maps(folder: Path, unit: Unit, info: StoreInfo, *, deep: bool) -> Iterator[Broken]:
    """The rules F8 to F12 that the maps of a segment break; its table of examples, if any, is known to be sound."""
    table = folder / names.parquet_name("examples")
    if table.is_file() and pq.read_metadata(table).num_rows > ROWS_PER_BYTE * table.stat().st_size:
        return  # F7 tells
    examples = pq.read_table(table).to_pylist() if table.is_file() else []
    planned = info.segments[int(unit.id)]
    numbers = [row["example"] for row in examples]
    is_whole = len(numbers) == planned.stop - planned.first and None not in numbers
    if not is_whole or sorted(numbers) != list(range(planned.first, planned.stop)):
        yield "F9", table.name, f"not the examples {planned.first} to {planned.stop} (exclusive) of the plan"
    if astray := [row["segment"] for row in examples if row["segment"] != int(unit.id)]:
        yield "F9", table.name, f"examples that say they are of segment {astray[0]}"
    if info.kept.maps == "none":
        return
    if not _is_group(folder / names.MAPS / "zarr.json"):
        yield "F8", f"{names.MAPS}/zarr.json", "no group of Zarr v3"
    for name, kind in info.kinds.items():
        owned: list[Owned] = []
        for broken in _owned(examples, name, kind, info.kept.topk, owned):
            yield "F10", table.name, broken
        if owned:
            first, queries, width, _, _ = owned[-1]
            arrays, broken_arrays = {}, []
            for array_name, (dtype, per_row) in _expected(name, info).items():
                cells = (first + queries * width) // width * per_row if per_row else first + queries * width
                found = _opened(folder, array_name, dtype, (kind.layers, kind.heads, cells))
                if isinstance(found, str):
                    broken_arrays.append(("F8", f"{names.MAPS}/{array_name}", found))
                else:
                    arrays[array_name] = found
            yield from broken_arrays
            if deep and not broken_arrays:
                yield from _rows(info, name, arrays, owned, kind, LargestWeights(folder, name, kind))


def check_added_maps(folder: Path, unit: Unit, info: StoreInfo, *, deep: bool) -> Iterator[Broken]:
    """The rules F8 and F11 that the arrays of an addition break; nothing for an addition without such arrays."""
    suffix = names.ADDED_MAPS.get(str(unit.facts.get("evidence")))
    if suffix is None:
        return
    number = str(unit.facts.get("segment"))
    if not names.is_segment_name(number) or int(number) >= len(info.segments):
        yield "F8", names.MAPS, f"arrays beside segment {number}, which is not in the plan"
        return
    if not _is_group(folder / names.MAPS / "zarr.json"):
        yield "F8", f"{names.MAPS}/zarr.json", "no group of Zarr v3"
    for name, kind in info.kinds.items():
        where = f"{names.MAPS}/{name}_{suffix}"
        shape = (kind.layers, kind.heads, info.segments[int(number)].cells[name])
        found = _opened(folder, f"{name}_{suffix}", "float32", shape)
        if isinstance(found, str):
            yield "F8", where, found
        elif deep:
            yield from (("F11", where, broken) for broken in _undecoded(found))


def _undecoded(found: Guarded) -> Iterator[str]:
    layers, heads, cells = found.array.shape
    for layer in range(layers):
        for start in range(0, cells, max(1, BLOCK_CELLS // heads)):
            try:
                stop = min(start + max(1, BLOCK_CELLS // heads), cells)
                found.read(slice(layer, layer + 1), slice(0, heads), slice(start, stop))
            except Exception as error:  # zarr's pipelines raise errors of many types on damaged chunks
                yield f"layer {layer}, cell {start} or later: {error}"
                break


def _is_group(path: Path) -> bool:
    try:
        described = load(path)
    except Damaged:
        return False
    return isinstance(described, dict) and (described.get("zarr_format"), described.get("node_type")) == (3, "group")


def _owned(
    examples: Sequence[Mapping[str, Any]], name: str, kind: Kind, topk: int | None, owned: list[Owned]
) -> Iterator[str]:
    """Fills `owned` in the order of cells, and says where cells are missing, overlap or leave a gap."""
    column, sides = f"cell_{name}", {"source": "n_tokens", "target": "n_target_tokens"}
    for row in examples:
        first, queries, keys = row[column], row[sides[kind.queries]], row[sides[kind.keys]]
        if queries is None or keys is None or min(queries, keys) < 1:
            if first is not None:
                yield f"{column} of example {row['example']} is {first}, without tokens on both sides"
        elif first is None:
            yield f"{column} of example {row['example']} is null, with {queries} queries and {keys} keys"
        else:
            owned.append((first, queries, topk or keys, keys, row["example"]))
    owned.sort()
    end = 0
    for first, queries, width, _, example in owned:
        if first != end:
            yield f"{column} of example {example} is {first}, not {end}"
        end = first + queries * width


def _expected(name: str, info: StoreInfo) -> dict[str, tuple[str, int]]:
    """Arrays of a kind: their type, and how many cells of theirs stand for a row (0: every cell that is owned)."""
    dtype = PRECISIONS[info.precision].dtype
    if info.kept.topk is None:
        return {name: (dtype, 0)}
    return {f"{name}_topk_weight": (dtype, 0), f"{name}_topk_key": ("uint32", 0), f"{name}_topk_rest": ("float32", 1)}


def _opened(folder: Path, name: str, dtype: str, shape: tuple[int, int, int]) -> Guarded | str:
    try:
        array = open_array(folder, name)
    except Damaged as error:
        return str(error)
    if array.shape != shape or array.dtype != np.dtype(dtype):
        return f"{array.dtype} of shape {list(array.shape)}, not {dtype} of {list(shape)}"
    if not np.array_equal(array.fill_value, _FILL.get(dtype, np.nan), equal_nan=True):
        return f"the fill value {array.fill_value}, which reads as a weight"
    return Guarded(array, folder / names.MAPS / name)


_FILL = {"uint8": 255, "uint32": NO_KEY}


def _rows(
    info: StoreInfo,
    name: str,
    arrays: Mapping[str, Guarded],
    owned: Sequence[Owned],
    kind: Kind,
    largest: LargestWeights,
) -> Iterator[Broken]:
    precision = PRECISIONS[info.precision]
    where = f"{names.MAPS}/{name}"
    layers, heads = (
        [number for number in range(most) if chosen is None or number in chosen]
        for chosen, most in ((info.kept.layers, kind.layers), (info.kept.heads, kind.heads))
    )
    ahead = {name: Ahead(found.array, BLOCK_CELLS, found.read) for name, found in arrays.items()}
    for layer in layers:
        for first, queries, width, keys, example in owned:
            place = f"layer {layer}, example {example}"
            for some, rows in _blocks(heads, queries, width):
                try:
                    weights, left = _decoded(info, name, ahead, layer, some, first, rows, width, keys)
                except Damaged as error:
                    yield "F11", where, f"{place}: {error.found}"
                    break
                except Exception as error:  # zarr's pipelines raise errors of many types on damaged chunks
                    yield "F11", where, f"{place}: {error}"
                    break
                worst = _worst_row(precision, weights, left, _falls_short(info))
                if worst is not None:
                    head, query, total = worst
                    row = f"{place}, head {some[head]}, query {rows.start + query}"
                    yield "F12", where, f"{row}: the row sums to {total:.6g}, or holds less than 0"
                    break
                other = largest.differs(precision, weights, layer, some, example, rows)
                if other is not None:
                    head, query, weight, told = other
                    row = f"{place}, head {some[head]}, query {rows.start + query}"
                    yield "F15", where, f"{row}: the largest weight is {weight:.6g}, {told:.6g} in token_facts"
                    break


def _falls_short(info: StoreInfo) -> bool:
    """Whether the model is declared to give part of a row to no key (attention sinks)."""
    return bool(info.model.get("row_sums", "one") != "one")


def _blocks(heads: Sequence[int], queries: int, width: int) -> Iterator[tuple[Sequence[int], range]]:
    """Heads and queries that are decoded together: a long example must not be decoded all at once."""
    rows = max(1, BLOCK_CELLS // 16 // width)
    together = max(1, BLOCK_CELLS // (min(queries, rows) * width))
    for head in range(0, len(heads), together):
        for query in range(0, queries, rows):
            yield heads[head : head + together], range(query, min(query + rows, queries))


def _decoded(
    info: StoreInfo,
    name: str,
    arrays: Mapping[str, Ahead],
    layer: int,
    heads: Sequence[int],
    first: int,
    rows: range,
    width: int,
    keys: int,
) -> tuple[Any, Any]:
    """Codes [head, query, cell of the row], and what was not kept of each row [head, query]."""

    def read(array: Ahead, start: int, per_row: int) -> Any:
        codes = array.read(layer, heads, start + rows.start * per_row, start + rows.stop * per_row)
        return codes.reshape(len(heads), len(rows), per_row)

    if info.kept.topk is None:
        return read(arrays[name], first, width), 0.0
    weights = read(arrays[f"{name}_topk_weight"], first, width)
    # A place without a key holds no weight; an absent chunk reads as such places.
    key = read(arrays[f"{name}_topk_key"], first, width)
    if ((key >= keys) & ((key != NO_KEY) | (weights != 0))).any():
        raise Damaged("reading keys", "a weight without a key of its example")
    return weights, read(arrays[f"{name}_topk_rest"], first // width, 1)[:, :, 0].astype(np.float64)


def _worst_row(precision: Precision, codes: Any, left: Any, falls_short: bool) -> tuple[int, int, float] | None:
    weights = precision.decode(codes)
    sums = weights.sum(axis=2, dtype=np.float64) + left
    allowed = precision.half_step(codes).sum(axis=2, dtype=np.float64) + SOFTMAX_ERROR
    off = sums - 1 if falls_short else np.abs(sums - 1)
    # NaN, the fill value, fails the comparisons.
    wrong = np.argwhere(~((off <= allowed) & (weights.min(axis=2) >= 0) & (np.asarray(left) >= 0)))
    if not len(wrong):
        return None
    head, query = (int(index) for index in wrong[0])
    return head, query, float(sums[head, query])
