"""This file keeps what the model itself predicts for each example, before anything is switched off."""

import math
from collections.abc import Sequence
from typing import Any

from attnstore.capture.tasks import Item, Scored, scored_pass
from attnstore.job.evidence.lab import Lab
from attnstore.job.evidence.part import Output
from attnstore.job.rows import Placed

WHOLE = "none"
"""The head set of the model as it is."""


def predictions(lab: Lab, batch: Sequence[Placed], output: Output) -> None:
    """The rows of `predictions` for a batch."""
    assert lab.task is not None, "a recipe without a task asks for no predictions"
    items = lab.items(batch)
    scored = scored_pass(lab.instrument, lab.task, items, lab.task.inputs(items, lab.inputs(batch)))
    output.table("predictions").append_rows(prediction_rows(lab, WHOLE, items, scored))


def prediction_rows(lab: Lab, head_set: str, items: Sequence[Item], scored: Scored) -> list[dict[str, Any]]:
    """One row for each example of a batch; what is not finite becomes null."""
    assert lab.task is not None
    task = lab.task
    loss, n = scored.loss.detach().tolist(), scored.n.tolist()
    logits = None if scored.logits is None else scored.logits.detach().cpu().tolist()
    return [
        {
            "head_set": head_set,
            "task": lab.recipe.task.kind,
            "example": item.number,
            "loss": loss[row] if math.isfinite(loss[row]) else None,
            "n": n[row],
            "gold": task.gold(item),
            "predicted": scored.predicted[row] if scored.predicted else None,
            "score": scored.score[row] if scored.score else None,
            "logits": None if logits is None else logits[row],
        }
        for row, item in enumerate(items)
    ]
