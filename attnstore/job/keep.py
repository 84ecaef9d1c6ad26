"""This file decides which cells of the maps are stored and where: all, chosen layers and heads, top-k, or none."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.manifest import Kind, StoreInfo
from attnstore.format.names import KINDS
from attnstore.format.quantise import PRECISIONS
from attnstore.job.rows import Placed
from attnstore.reduce.axes import Frame
from attnstore.reduce.columns import Columns
from attnstore.reduce.largest import Largest, largest_weights

BLOCK_CELLS = 2**18
"""Cells, over all heads, that are rounded at a time: long inputs must not double in memory."""


class KeepMaps:
    """Where each example's cells lie, and how a layer's map becomes codes."""

    def __init__(self, info: StoreInfo) -> None:
        self.kinds, self.kept = info.kinds, info.kept
        self.precision = PRECISIONS[info.precision]

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
            specs |= self._specs(name, kind, cells, rows)
        return first, specs

    def _specs(self, name: str, kind: Kind, cells: int, rows: int) -> dict[str, ArraySpec]:
        layers, heads = (
            None if kept is None else tuple(number for number in kept if number < most)
            for kept, most in ((self.kept.layers, kind.layers), (self.kept.heads, kind.heads))
        )

        def spec(cells: int, dtype: str, fill: float, meaning: Mapping[str, str]) -> ArraySpec:
            return ArraySpec(kind.layers, kind.heads, cells, dtype, fill, layers, heads, attributes=meaning)

        codes = {"precision": self.precision.name, "formula": self.precision.formula}
        if self.kept.topk is None:
            return {name: spec(cells, self.precision.dtype, self.precision.fill, codes)}
        return {
            f"{name}_topk_key": spec(cells, "uint32", 2**32 - 1, {"formula": "key token"}),
            f"{name}_topk_weight": spec(cells, self.precision.dtype, self.precision.fill, codes),
            f"{name}_topk_rest": spec(rows, "float32", float("nan"), {"formula": "weight of the row not kept"}),
        }

    def append(
        self, maps: MapsWriter, kind: str, layer: int, weights: NDArray[np.float32], frame: Frame
    ) -> Columns | None:
        """Round one example's map [head, query, key] and append it, a block of queries at a time.

        Where only the largest weights are kept, what they hold and leave out: the columns of `kept_facts` from `head`
        on, each [kept head].
        """
        topk = self.kept.topk
        if not maps.keeps(f"{kind}_topk_key" if topk else kind, layer):
            return None
        chosen = slice(None) if self.kept.heads is None else [h for h in self.kept.heads if h < len(weights)]
        numbers = np.arange(len(weights), dtype=np.int16)[chosen]
        heads, (queries, keys) = len(numbers), weights.shape[1:]
        held = {name: np.zeros(heads) for name in ("kept_sum", "rest_sum", "rest_max", "largest_cut")}
        step = max(1, BLOCK_CELLS // max(1, heads * keys))
        for start in range(0, queries, step):
            block = weights[chosen, start : start + step]
            if topk is None:
                codes = self.precision.encode(np.ascontiguousarray(block))
                maps.append(kind, layer, codes.reshape(heads, block.shape[1] * keys))
                continue
            found = largest_weights(block, topk, causal_from=start if frame.causal else None)
            self._append_topk(maps, kind, layer, found, topk)
            held["kept_sum"] += found.weight.sum(axis=(1, 2), dtype=np.float64)
            held["rest_sum"] += found.rest.sum(axis=1)
            np.maximum(held["rest_max"], found.rest.max(axis=1), out=held["rest_max"])
            np.maximum(held["largest_cut"], found.next.max(axis=1), out=held["largest_cut"])
        return None if topk is None else {"head": numbers, "n_queries": np.full(heads, float(queries)), **held}

    def _append_topk(self, maps: MapsWriter, kind: str, layer: int, found: Largest, topk: int) -> None:
        (heads, queries, n), cells = found.key.shape, found.key.shape[1] * topk
        key = np.full((heads, queries, topk), 2**32 - 1, np.uint32)
        weight = np.zeros((heads, queries, topk), np.float32)
        key[:, :, :n], weight[:, :, :n] = found.key, found.weight
        maps.append(f"{kind}_topk_key", layer, key.reshape(heads, cells))
        maps.append(f"{kind}_topk_weight", layer, self.precision.encode(weight).reshape(heads, cells))
        maps.append(f"{kind}_topk_rest", layer, found.rest.astype(np.float32))
