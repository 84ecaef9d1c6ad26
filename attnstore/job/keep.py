"""This file decides which cells of the maps are stored and where: all, chosen layers and heads, top-k, or none."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.manifest import StoreInfo
from attnstore.format.map_arrays import NO_KEY, map_specs
from attnstore.format.names import KINDS
from attnstore.format.quantise import PRECISIONS, encoder
from attnstore.job.rows import Placed
from attnstore.reduce.axes import Frame
from attnstore.reduce.columns import Columns
from attnstore.reduce.largest import Largest, largest_weights

BLOCK_CELLS = 2**18
"""Cells, over all heads, that are rounded at a time: long inputs must not double in memory."""


class KeepMaps:
    """Where each example's cells lie, and how a layer's map becomes codes."""

    def __init__(self, info: StoreInfo, *, compiled: bool = False) -> None:
        self.kinds, self.kept = info.kinds, info.kept
        self.precision = PRECISIONS[info.precision]
        self.encode = encoder(self.precision, compiled=compiled)

    def plan(self, placed: Sequence[Placed]) -> tuple[dict[int, dict[str, int | None]], dict[str, ArraySpec]]:
        """First cell of every example and kind, in run order, and the arrays that hold them."""
        first: dict[int, dict[str, int | None]] = {item.number: dict.fromkeys(KINDS) for item in placed}
        specs: dict[str, ArraySpec] = {}
        if self.kept.maps == "none":
            return first, specs
        for name, kind in self.kinds.items():
            cells = rows = 0
            for item in placed:
                frame = item.frames.get(name)
                if frame is not None:
                    first[item.number][name] = cells
                    cells += len(frame.queries) * (self.kept.topk or len(frame.keys))
                    rows += len(frame.queries)
            specs |= map_specs(name, kind, self.kept, self.precision.name, cells, rows)
        return first, specs

    def append(
        self, maps: MapsWriter, kind: str, layer: int, weights: Sequence[NDArray[Any]], frames: Sequence[Frame]
    ) -> list[Columns]:
        """Round a layer's maps [head, query, key] of some examples, unless they are codes, and append them in order.

        Where only the largest weights are kept, what they hold and leave out of each example: the columns of
        `kept_facts` from `head` on, each [kept head]. Nothing where this layer is not kept.
        """
        if not maps.keeps(f"{kind}_topk_key" if self.kept.topk else kind, layer):
            return []
        if self.kept.topk:
            return [self._append_largest(maps, kind, layer, *one) for one in zip(weights, frames, strict=True)]
        # Short maps are rounded several at a time: 17 tokens make fewer cells than a call costs.
        for together in _together([own[self._heads(len(own))] for own in weights]):
            cells = _joined(together)
            maps.append(kind, layer, self.encode(cells) if cells.dtype == np.float32 else cells)
        return []

    def _heads(self, n_heads: int) -> slice | list[int]:
        return slice(None) if self.kept.heads is None else [head for head in self.kept.heads if head < n_heads]

    def _append_largest(
        self, maps: MapsWriter, kind: str, layer: int, weights: NDArray[np.float32], frame: Frame
    ) -> Columns:
        chosen, topk = self._heads(len(weights)), self.kept.topk or 0
        numbers = np.arange(len(weights), dtype=np.int16)[chosen]
        held = {name: np.zeros(len(numbers)) for name in ("kept_sum", "rest_sum", "rest_max", "largest_cut")}
        start = 0
        for block in _row_blocks(weights[chosen]):
            found = largest_weights(block, topk, causal_from=start if frame.causal else None)
            start += block.shape[1]
            self._append_topk(maps, kind, layer, found, topk)
            held["kept_sum"] += found.weight.sum(axis=(1, 2), dtype=np.float64)
            held["rest_sum"] += found.rest.sum(axis=1)
            np.maximum(held["rest_max"], found.rest.max(axis=1), out=held["rest_max"])
            np.maximum(held["largest_cut"], found.next.max(axis=1), out=held["largest_cut"])
        return {"head": numbers, "n_queries": np.full(len(numbers), float(weights.shape[1])), **held}

    def _append_topk(self, maps: MapsWriter, kind: str, layer: int, found: Largest, topk: int) -> None:
        (heads, queries, n), cells = found.key.shape, found.key.shape[1] * topk
        key = np.full((heads, queries, topk), NO_KEY, np.uint32)
        weight = np.zeros((heads, queries, topk), np.float32)
        key[:, :, :n], weight[:, :, :n] = found.key, found.weight
        maps.append(f"{kind}_topk_key", layer, key.reshape(heads, cells))
        maps.append(f"{kind}_topk_weight", layer, self.encode(weight).reshape(heads, cells))
        maps.append(f"{kind}_topk_rest", layer, found.rest.astype(np.float32))


def _together(maps: Sequence[NDArray[Any]]) -> Iterator[list[NDArray[Any]]]:
    """Maps [head, query, key], several short ones at a time and a long one by its queries."""
    held: list[NDArray[Any]] = []
    cells = 0
    for own in maps:
        if held and cells + own.size > BLOCK_CELLS:
            yield held
            held, cells = [], 0
        if own.size > BLOCK_CELLS:
            yield from ([block] for block in _row_blocks(own))
        else:
            held.append(own)
            cells += own.size
    if held:
        yield held


def _row_blocks(weights: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """A map [head, query, key] by its queries, some at a time."""
    heads, queries, keys = weights.shape
    step = max(1, BLOCK_CELLS // max(1, heads * keys))
    for start in range(0, queries, step):
        yield weights[:, start : start + step]


def _joined(maps: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The cells [head, cell] of some maps [head, query, key], one after another."""
    return np.concatenate([one.reshape(len(one), one.shape[1] * one.shape[2]) for one in maps], axis=1)
