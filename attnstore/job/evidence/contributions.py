"""This file makes the rows of logit_contributions."""

import math
from collections.abc import Sequence

from attnstore.capture.evidence.attributions import check_classes
from attnstore.capture.evidence.contributions import Reading, contributions
from attnstore.job.evidence.lab import Lab, by_kind
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Placed


def logit_contributions(reading: Reading, lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of logit_contributions for a batch, given how the model's classifier reads the last stream."""
    items, rows = by_kind(lab.info, batch), []
    task = check_classes(lab.task, "logit_contributions")
    for circuit, true, predicted in contributions(lab.instrument, reading, task, lab.items(batch), lab.inputs(batch)):
        columns = {"true_class": true.tolist(), "predicted_class": predicted.tolist()}
        for row, item in items[circuit.kind]:
            for head in range(circuit.heads):
                values = {name: value[row][head] for name, value in columns.items() if math.isfinite(value[row][head])}
                where = {"example": item.number, "kind": circuit.kind, "layer": circuit.layer, "head": head}
                rows.append({**where, **values})
    output.table("logit_contributions").append_rows(rows)
