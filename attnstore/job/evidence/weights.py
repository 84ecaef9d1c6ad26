"""This file makes the rows of head_weights, head_overlaps and compositions, which depend on no example."""

from collections.abc import Iterator, Mapping, Set
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.weights import Matrices, matrices
from attnstore.format.evidence_tables import EVIDENCE_TABLES
from attnstore.job.evidence.lab import Lab
from attnstore.job.evidence.part import Output, Part
from attnstore.reduce import circuits

Floats = NDArray[np.float64]


def weights(lab: Lab, there: Set[str]) -> Iterator[Part]:
    """The one part that there is."""
    yield Part("store", "all", 0, partial(_filled, lab))


def _filled(lab: Lab, output: Output) -> None:
    written: dict[str, list[Floats]] = {}
    known: dict[tuple[str, int, int], Mapping[str, Floats]] = {}
    for circuit in lab.instrument.circuits:
        own = matrices(circuit)
        same_stream = {} if circuit.is_self else dict.fromkeys(("ov_trace", "copying"), np.full(circuit.heads, np.nan))
        numbers = circuits.weight_numbers(own.query, own.key, own.value, own.output) | same_stream
        heads = np.arange(circuit.heads)
        columns = {"head": heads, "qk_bilinear": np.full(circuit.heads, circuit.is_bilinear), **numbers}
        output.table("head_weights").append(_rows("head_weights", circuit, columns))
        output.table("head_overlaps").append(_rows("head_overlaps", circuit, circuits.overlaps(own.output)))
        if not circuit.is_self:
            continue
        group = lab.info.kinds[circuit.kind].param_groups or tuple(range(circuit.layer + 1))
        earlier, (wrote, read) = written.setdefault(circuit.kind, []), _ends(own)
        for layer, before in enumerate(earlier):
            key = (circuit.kind, group[layer], group[circuit.layer])
            if key not in known:  # layers that share their parameters compose alike
                known[key] = {relation: circuits.composition(before, side) for relation, side in read.items()}
            for relation, scores in known[key].items():
                output.table("compositions").append(_composed(circuit, layer, relation, scores, own))
        earlier.append(wrote)


def _ends(own: Matrices) -> tuple[Floats, Mapping[str, Floats]]:
    """What the heads of a layer write, and what they read with, the gain of the norm before them multiplied in."""
    query, key, value = (
        matrix if own.gain is None or matrix is None else own.gain[:, None] * matrix
        for matrix in (own.query, own.key, own.value)
    )
    assert value is not None
    return circuits.writes(value, own.output), circuits.reads(query, key, value, own.output)


def _composed(circuit: Circuit, layer: int, relation: str, scores: Floats, own: Matrices) -> pa.RecordBatch:
    """The rows of all heads of an earlier layer with all of this one."""
    first, second = np.indices(scores.shape)
    n = scores.size
    bends = own.gain is None or (relation != "v" and not circuit.is_bilinear)
    columns = {
        "relation": np.full(n, relation),
        "layer_a": np.full(n, layer),
        "head_a": first.ravel(),
        "layer_b": np.full(n, circuit.layer),
        "head_b": second.ravel(),
        "score": scores.ravel(),
        "random": np.full(n, own.output.shape[2] ** -0.5),
        "approximate": np.full(n, bends),
        "folded": np.full(n, own.gain is not None),
    }
    return _rows("compositions", circuit, columns)


def _rows(table: str, circuit: Circuit, columns: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    """Rows of a table from its columns [row]; NaN becomes null."""
    schema = EVIDENCE_TABLES[table]
    n = len(next(iter(columns.values())))
    given = {"kind": np.full(n, circuit.kind), "layer": np.full(n, circuit.layer), **columns}
    arrays = [pa.array(given[field.name], from_pandas=True).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
