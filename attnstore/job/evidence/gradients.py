"""This file makes the rows of gradient_facts and importance_facts."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.capture.evidence.gradients import SUMS, slopes
from attnstore.capture.tasks import Task
from attnstore.format.fact_tables import STORED
from attnstore.job.evidence.lab import Lab, by_kind
from attnstore.job.evidence.listed import lists
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Aligned, Placed

Sums = Mapping[str, NDArray[np.float64]]


def gradients(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of gradient_facts for a batch; none for an example without a target."""
    items = by_kind(lab.info, batch)
    classes, sums = dict[tuple[str, int], tuple[_Classes, _Classes]](), dict[tuple[str, int], list[Sums]]()
    for slope in slopes(lab.instrument, task_of(lab), lab.items(batch), lab.inputs(batch)):
        name = slope.circuit.kind
        kind = lab.info.kinds[name]
        for row, item in items[name]:
            if not slope.scored[row]:
                continue
            place = name, item.number
            if place not in classes:
                classes[place] = _Classes(_side(item, kind.queries)), _Classes(_side(item, kind.keys))
            queries, keys = classes[place]
            sums.setdefault(place, []).append(slope.class_sums(row, queries.one_hot, keys.one_hot))
    for (name, number), layers in sums.items():
        causal = lab.info.kinds[name].causal
        output.table("gradient_facts").append(_class_rows(number, name, causal, *classes[name, number], layers))


class _Classes:
    """The classes of tokens, as flow_facts has them: special tokens by name, punct, other."""

    def __init__(self, side: Aligned) -> None:
        own = [
            special or ("punct" if punct else "other")
            for special, punct in zip(side.encoded.special, side.axis.punct.tolist(), strict=True)
        ]
        self.names = sorted(set(own))
        self.one_hot = np.array([[float(name == one) for name in self.names] for one in own])
        self.sizes = [own.count(name) for name in self.names]


def _side(item: Placed, side: str) -> Aligned:
    found = item.source if side == "source" else item.target
    assert found is not None, "an example has maps only of sides that it has"
    return found


def _class_rows(
    number: int, kind: str, causal: bool, queries: _Classes, keys: _Classes, layers: Sequence[Sums]
) -> pa.RecordBatch:
    """A row for each pair of classes, from [head, query class, key class] of every layer."""
    schema, n = STORED["gradient_facts"], len(queries.names) * len(keys.names)
    columns = {name: np.concatenate([layer[name] for layer in layers]).reshape(-1, n).T for name in SUMS}
    if not all(np.isfinite(values).all() for values in columns.values()):
        columns = {name: np.full_like(values, np.nan) for name, values in columns.items()}  # which become null
    seen = keys.one_hot.cumsum(axis=0) if causal else np.tile(keys.sizes, (len(queries.one_hot), 1))
    arrays: list[pa.Array] = [
        pa.array(np.full(n, number, np.int32)),
        pa.array([kind] * n, pa.string()),
        pa.array([name for name in queries.names for _ in keys.names], pa.string()),
        pa.array(keys.names * len(queries.names), pa.string()),
        pa.array(np.repeat(np.array(queries.sizes, np.int32), len(keys.names))),
        pa.array(np.tile(np.array(keys.sizes, np.int32), len(queries.names))),
        pa.array((queries.one_hot.T @ seen).astype(np.int64).ravel()),
        *(lists(columns[name], schema.field(name).type) for name in SUMS),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def importance(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of importance_facts for a batch; none for an example without a target."""
    items, rows = by_kind(lab.info, batch), []
    for slope in slopes(lab.instrument, task_of(lab), lab.items(batch), lab.inputs(batch)):
        circuit = slope.circuit
        for row, item in items[circuit.kind]:
            if not slope.scored[row]:
                continue
            tokens = len(item.frames[circuit.kind].queries)
            gates = slope.gates(row, tokens)
            signed, absolute = gates.sum(axis=1), np.abs(gates).sum(axis=1)
            is_finite = bool(np.isfinite(absolute).all())
            for head in range(circuit.heads):
                rows.append(
                    {
                        "example": item.number,
                        "kind": circuit.kind,
                        "layer": circuit.layer,
                        "head": head,
                        "importance": float(signed[head]) if is_finite else None,
                        "importance_abs_tokens": float(absolute[head]) if is_finite else None,
                        "n_tokens": tokens,
                    }
                )
    output.table("importance_facts").append_rows(rows)


def task_of(lab: Lab) -> Task:
    """The task, without which no recipe asks for such evidence."""
    assert lab.task is not None
    return lab.task
