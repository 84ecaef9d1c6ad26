"""This file writes the maps of a new segment from those of pieces of other stores: codes are moved, never computed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attnstore.format import names
from attnstore.format.arrays import CHUNK_CELLS, ArraySpec, MapsWriter
from attnstore.format.manifest import File, Kept, Kind, StoreInfo
from attnstore.format.map_arrays import map_specs
from attnstore.format.quantise import Codes
from attnstore.share.source import Numbers, Piece

BLOCK_CODES = 2**21
"""Codes, over all heads, that are read at a time."""

_SIZES = {"source": "n_tokens", "target": "n_target_tokens"}


@dataclass(frozen=True, slots=True)
class Cut:
    """The maps of one kind that a piece takes: arrays over its examples that have any, in the order of their cells.

    `cell` is the first cell in the segment of the source, `queries` and `keys` are sizes.
    """

    example: Numbers
    cell: Numbers
    queries: Numbers
    keys: Numbers


def cuts(piece: Piece) -> dict[str, Cut]:
    """The maps of each kind that a piece takes; where its store keeps none, the cells are those of a store that did."""
    info = piece.source.info
    wanted = ["example", *_SIZES.values(), *(f"cell_{name}" for name in info.kinds)]
    batches = list(piece.rows("examples", wanted))

    def column(name: str) -> Numbers:
        parts = [batch[name].fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) for batch in batches]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    found, example = {}, column("example")
    for name, kind in info.kinds.items():
        cell, queries, keys = column(f"cell_{name}"), column(_SIZES[kind.queries]), column(_SIZES[kind.keys])
        there = np.flatnonzero((queries > 0) & (keys > 0))
        there = there[np.argsort(cell[there], kind="stable")]
        found[name] = Cut(example[there], cell[there], queries[there], keys[there])
    return found


def first_cells(pieces: Sequence[Mapping[str, Cut]], kept: Kept) -> list[dict[str, dict[int, int]]]:
    """Of each piece the first cell that its examples, by their number in its source, get in the new segment."""
    found: list[dict[str, dict[int, int]]] = []
    ends: dict[str, int] = {}
    for cut_by_kind in pieces:
        own: dict[str, dict[int, int]] = {}
        for name, cut in cut_by_kind.items():
            sizes = cut.queries * (kept.topk or cut.keys)
            starts = np.cumsum(sizes) - sizes + ends.get(name, 0)
            ends[name] = ends.get(name, 0) + int(sizes.sum())
            own[name] = {} if kept.maps == "none" else dict(zip(cut.example.tolist(), starts.tolist(), strict=True))
        found.append(own)
    return found


def planned_cells(pieces: Sequence[Mapping[str, Cut]], kinds: Mapping[str, Kind]) -> dict[str, int]:
    """Cells of each kind that a plan gives to a segment of these pieces."""
    return {name: sum(int((own[name].queries * own[name].keys).sum()) for own in pieces) for name in kinds}


def write_maps(
    staging: Path, info: StoreInfo, kept: Kept, pieces: Sequence[tuple[Piece, Mapping[str, Cut]]]
) -> list[File]:
    """Write `maps.zarr` of a segment of these pieces; its shards. `info` is that of the new store."""
    specs: dict[str, ArraySpec] = {}
    for name, kind in info.kinds.items():
        queries = sum(int(own[name].queries.sum()) for _, own in pieces)
        cells = sum(int((own[name].queries * (kept.topk or own[name].keys)).sum()) for _, own in pieces)
        specs |= map_specs(name, kind, kept, info.precision, cells, queries)
    return _write(staging, info, kept.topk, specs, pieces)


def write_added_maps(
    staging: Path, info: StoreInfo, suffix: str, meaning: str, pieces: Sequence[tuple[Piece, Mapping[str, Cut]]]
) -> list[File]:
    """Write the arrays `<kind>_<suffix>` of an addition, which lie beside the cells of a segment of these pieces."""
    specs = {
        f"{name}_{suffix}": ArraySpec(
            kind.layers,
            kind.heads,
            planned_cells([own for _, own in pieces], info.kinds)[name],
            "float32",
            float("nan"),
            attributes={"formula": meaning},
        )
        for name, kind in info.kinds.items()
    }
    return _write(staging, info, None, specs, pieces)


def _write(
    staging: Path,
    info: StoreInfo,
    topk: int | None,
    specs: Mapping[str, ArraySpec],
    pieces: Sequence[tuple[Piece, Mapping[str, Cut]]],
) -> list[File]:
    writer = MapsWriter(staging / names.MAPS, specs)
    try:
        for name, spec in specs.items():
            kind = name.partition("_")[0]
            heads = range(spec.heads) if spec.kept_heads is None else spec.kept_heads
            for layer in range(spec.layers) if spec.kept_layers is None else spec.kept_layers:
                for piece, own in pieces:
                    for wanted in _together(_ranges(own[kind], topk, name.endswith("_topk_rest")), len(heads)):
                        writer.append(name, layer, _codes(piece, name, layer, heads, wanted))
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _ranges(cut: Cut, topk: int | None, is_rest: bool) -> Iterator[tuple[int, int]]:
    """The cells of the source that are taken, neighbours joined; ends are exclusive."""
    start = cut.cell // topk if topk and is_rest else cut.cell
    size = cut.queries * (1 if is_rest else (topk or cut.keys))
    begin = end = -1
    for low, high in zip(start.tolist(), (start + size).tolist(), strict=True):
        if low != end:
            if end > begin:
                yield begin, end
            begin = low
        end = high
    if end > begin:
        yield begin, end


def _together(ranges: Iterable[tuple[int, int]], heads: int) -> Iterator[list[tuple[int, int]]]:
    """Ranges that are read at a time: cut where they are long, and joined where they lie within a chunk or a few.

    A chunk would otherwise be decoded once for every example in it.
    """
    step = max(1, BLOCK_CODES // max(1, heads))
    held: list[tuple[int, int]] = []
    for start, stop in ranges:
        low = start
        while low < stop:
            if held and (low >= held[0][0] + step or low - held[-1][1] > CHUNK_CELLS):
                yield held
                held = []
            high = min(stop, (held[0][0] if held else low) + step)
            held.append((low, high))
            low = high
    if held:
        yield held


def _codes(piece: Piece, name: str, layer: int, heads: Sequence[int], ranges: Sequence[tuple[int, int]]) -> Codes:
    """The codes [head, cell] of some ranges of cells, which are read at once."""
    first, stop = ranges[0][0], ranges[-1][1]
    read = piece.source.store.engine.cells.codes
    found = [read(piece.segment, name, slice(layer, layer + 1), run, slice(first, stop))[0] for run in _runs(heads)]
    parts = [np.concatenate([own[:, low - first : high - first] for own in found]) for low, high in ranges]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _runs(heads: Sequence[int]) -> list[slice]:
    """The heads as slices of neighbours."""
    found: list[slice] = []
    for head in heads:
        if found and found[-1].stop == head:
            found[-1] = slice(found[-1].start, head + 1)
        else:
            found.append(slice(head, head + 1))
    return found
