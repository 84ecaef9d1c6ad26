"""This file keeps derivatives by every weight: arrays [layer, head, cell] beside the cells of a segment's maps."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.attributions import Path, check_classes, paths
from attnstore.capture.evidence.gradients import slopes
from attnstore.errors import BadInput
from attnstore.format.arrays import ArraySpec
from attnstore.format.names import ADDED_MAPS
from attnstore.job.evidence.gradients import task_of
from attnstore.job.evidence.lab import Lab, by_kind
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Placed

_FORMULAS = {
    "gradient_maps": "dloss / dweight",
    "integrated_gradients": "weight * mean of dlogit / dweight while all maps of the layer grow from 0",
}


def gradient_maps(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """dLoss/dA of a batch; NaN in a layer's every cell where an example has no target or not all of it is finite."""
    items, maps = by_kind(lab.info, batch), _Maps("gradient_maps", lab, batch, output)
    for slope in slopes(lab.instrument, task_of(lab), lab.items(batch), lab.inputs(batch)):
        for row, item in items[slope.circuit.kind]:
            shape = _shape(item, slope.circuit)
            if slope.is_finite(row, *shape):
                for _, _, gradient in slope.blocks(row, *shape):
                    maps.append(slope.circuit, gradient.cpu().numpy())
            else:
                maps.leave_out(slope.circuit, shape)


def integrated_gradients(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The attributions of a batch, NaN likewise, and the rows of attribution_facts."""
    items, maps = by_kind(lab.info, batch), _Maps("integrated_gradients", lab, batch, output)
    task = check_classes(lab.task, "integrated_gradients")
    for path in paths(lab.instrument, task, lab.items(batch), lab.inputs(batch)):
        circuit, rows = path.slope.circuit, []
        for row, item in items[circuit.kind]:
            summed = _attributed(path, row, _shape(item, circuit), maps)
            for head in range(circuit.heads):
                where = {"example": item.number, "kind": circuit.kind, "layer": circuit.layer, "head": head}
                rows.append({**where, **{name: float(values[head]) for name, values in summed.items()}})
        output.table("attribution_facts").append_rows(rows)


def _attributed(path: Path, row: int, shape: tuple[int, int], maps: "_Maps") -> dict[str, NDArray[np.float64]]:
    """Write one example's attributions; their max and sum [head], and the change of the logit; none if not finite."""
    circuit = path.slope.circuit
    if not (path.slope.is_finite(row, *shape) and np.isfinite(path.change[row])):
        maps.leave_out(circuit, shape)
        return {}
    largest, total = np.full(circuit.heads, -np.inf), np.zeros(circuit.heads)
    for block in path.blocks(row, *shape):
        maps.append(circuit, block)
        np.maximum(largest, block.max(axis=(1, 2)), out=largest)
        total += block.sum(axis=(1, 2), dtype=np.float64)
    return {"max": largest, "sum": total, "change": np.full(circuit.heads, path.change[row])}


def _shape(item: Placed, circuit: Circuit) -> tuple[int, int]:
    frame = item.frames[circuit.kind]
    return len(frame.queries), len(frame.keys)


class _Maps:
    """The arrays of a part, whose cells follow one another as those of the segment's maps do."""

    def __init__(self, evidence: str, lab: Lab, batch: Sequence[Placed], output: Output) -> None:
        info, self._suffix = lab.info, ADDED_MAPS[evidence]
        if info.kept.maps != "all":
            raise BadInput(
                f"adding {evidence}",
                f'a store with keep.maps = "{lab.recipe.keep.maps}"',
                'keep.maps = "all": these arrays lie beside the maps, cell by cell',
            )
        planned = next(one for one in info.segments if one.first <= batch[0].number < one.stop)
        meaning = {"formula": _FORMULAS[evidence]}
        self._writer = output.maps(
            {
                f"{name}_{self._suffix}": ArraySpec(
                    kind.layers, kind.heads, planned.cells[name], "float32", float("nan"), attributes=meaning
                )
                for name, kind in info.kinds.items()
            }
        )

    def append(self, circuit: Circuit, block: NDArray[np.floating]) -> None:
        """Take some queries of the next example [head, query, key]."""
        cells = np.asarray(block, np.float32).reshape(len(block), -1)
        self._writer.append(f"{circuit.kind}_{self._suffix}", circuit.layer, cells)

    def leave_out(self, circuit: Circuit, shape: tuple[int, int]) -> None:
        """Fill the place of an example that has no such numbers."""
        for _ in range(shape[0]):
            self.append(circuit, np.full((circuit.heads, 1, shape[1]), np.nan, np.float32))
