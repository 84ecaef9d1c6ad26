"""This file makes the rows of value_norms and output_norms."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attnstore.capture.evidence.norms import lengths
from attnstore.job.evidence.lab import Lab, by_kind
from attnstore.job.evidence.listed import listed
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Placed

Floats = NDArray[np.float32]


def value_norms(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of value_norms and output_norms for a batch."""
    found = lengths(lab.instrument, lab.inputs(batch))
    for kind, rows in by_kind(lab.info, batch).items():
        for row, item in rows:
            keys, queries = len(item.frames[kind].keys), len(item.frames[kind].queries)
            value = _by_token(found.value[kind], row, keys)
            output.table("value_norms").append(listed("value_norms", item.number, kind, keys, {"value_norm": value}))
            given = {
                "output_norm": _by_token(found.output[kind], row, queries),
                "layer_norm": np.stack([layer[row, :queries] for layer in found.layer[kind]], axis=1),
            }
            output.table("output_norms").append(listed("output_norms", item.number, kind, queries, given))


def _by_token(layers: Sequence[Floats], row: int, tokens: int) -> Floats:
    """[token, layer and head] of one example of the batch."""
    return np.concatenate([layer[row, :, :tokens] for layer in layers]).T
