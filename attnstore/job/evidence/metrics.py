"""This file says by which metrics a task is scored; the view set_scores computes them."""

import math
from collections.abc import Mapping, Sequence

from attnstore.capture.tasks import Task
from attnstore.errors import BadInput

_METRICS: Mapping[str, tuple[str, ...]] = {
    "classification": ("accuracy", "f1", "matthews", "loss"),
    "regression": ("spearman", "pearson", "loss"),
    "similarity": ("spearman", "pearson", "loss"),
    "masked_lm": ("loss", "accuracy"),
    "causal_lm": ("loss", "accuracy"),
    "translation": ("loss", "accuracy"),
    "answering": ("f1", "exact_match", "loss"),
}
"""The metrics of each kind of task, the default first."""

Values = Mapping[str, float | None]
"""Metric -> value, None where it is not defined."""


def metrics_of(kind: str, task: Task) -> Sequence[str]:
    """The metrics of a task, the default first: "f1 good" is that of one class."""
    if ":" in kind:
        return ("score",)
    return (*_METRICS[kind], *(f"f1 {name}" for name in getattr(task, "names", ())))


def checked_metric(kind: str, task: Task, metric: str) -> str:
    """The metric that a recipe names, the task's default for "". BadInput for one that the task lacks."""
    known = metrics_of(kind, task)
    if metric and metric not in known:
        raise BadInput("reading ablations.metric", repr(metric), f"one of {', '.join(known)} for {kind}")
    return metric or known[0]


def goodness(values: Values, metric: str) -> tuple[float, float]:
    """What is larger the better the model is: by the metric, then by the loss; undefined is worst."""
    return _larger(values, metric), _larger(values, "loss")


def _larger(values: Values, metric: str) -> float:
    value = values.get(metric)
    if value is None:
        return -math.inf
    return -value if metric == "loss" else value
