"""This file makes the rows of value_grams."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from attnstore.capture.evidence.grams import LayerGrams
from attnstore.capture.evidence.grams import grams as measure
from attnstore.format.evidence_tables import EVIDENCE_TABLES
from attnstore.job.evidence.lab import Lab, by_kind
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Placed

_SCHEMA = EVIDENCE_TABLES["value_grams"]


def grams(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of value_grams for a batch: one for each key token at each layer."""
    found = measure(lab.instrument, lab.inputs(batch))
    for kind, own in by_kind(lab.info, batch).items():
        for row, item in own:
            n = len(item.frames[kind].keys)
            for layer, one in enumerate(found[kind]):
                output.table("value_grams").append(_rows(one, item.number, kind, layer, row, n))


def _rows(found: LayerGrams, example: int, kind: str, layer: int, row: int, tokens: int) -> pa.RecordBatch:
    keys = [np.full(tokens, example), [kind] * tokens, np.full(tokens, layer), np.arange(tokens)]
    arrays = [pa.array(key, field.type) for key, field in zip(keys, _SCHEMA, strict=False)]
    for field in list(_SCHEMA)[len(keys) :]:
        values = getattr(found, field.name)
        if values is None:
            arrays.append(pa.nulls(tokens, field.type))
        elif values.ndim == 2:
            arrays.append(pa.array(values[row, :tokens], field.type))
        else:
            own = np.ascontiguousarray(values[row, :tokens])
            offsets = pa.array(np.arange(tokens + 1, dtype=np.int32) * own.shape[1])
            arrays.append(pa.ListArray.from_arrays(offsets, pa.array(own.ravel()), type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)
