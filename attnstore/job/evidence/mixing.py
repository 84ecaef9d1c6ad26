"""This file makes the rows of mixing_facts and identity_facts."""

from collections.abc import Sequence

import numpy as np

from attnstore.capture.evidence.mixing import COLUMNS
from attnstore.capture.evidence.mixing import mixing as measure
from attnstore.job.evidence.lab import Lab, by_kind
from attnstore.job.evidence.listed import listed
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Placed


def mixing(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of mixing_facts and identity_facts for a batch; cross-attention has no token that it could keep."""
    found = measure(lab.instrument, lab.inputs(batch))
    own, likeness = by_kind(lab.info, batch), found.likeness
    for kind, layers in found.parts.items():
        for row, item in own[kind]:
            n = len(item.frames[kind].queries)
            parts = np.stack([layer[:, row, :n] for layer in layers], axis=2)  # [column, token, layer]
            columns = dict(zip(COLUMNS, parts, strict=True))
            output.table("mixing_facts").append(listed("mixing_facts", item.number, kind, n, columns))
            states = {
                name: np.stack([state[row, :n] for state in column[kind]], axis=1)
                for name, column in (
                    ("cosine", likeness.cosine),
                    ("nearest", likeness.nearest),
                    ("hidden_norm", likeness.length),
                )
            }
            output.table("identity_facts").append(listed("identity_facts", item.number, kind, n, states))
