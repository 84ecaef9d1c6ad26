"""This file makes tiny models in float64 with their tasks, for the tests of gradients and attributions."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnstore.capture.evidence.gradients import Slope, slopes
from attnstore.capture.instrument import Instrument, Watch
from attnstore.capture.task_model import load_for, task_of
from attnstore.capture.tasks import Item, Regression, Task
from attnstore.text.encoded import Encoded
from tests.job.task_models import task_model

LENGTHS = (7, 4)
"""Tokens of the two examples of a batch; the second is padded."""


class Bench:
    """A tiny model in float64 with its task, two examples and what it is fed."""

    def __init__(self, folder: Path, family: str, task: str) -> None:
        model = task_model(folder, family, task)
        captor = load_for(task, str(model), takes="pixels" if family == "vit" else "text")
        self.instrument = Instrument(captor)
        captor.model.double()
        self.family, self.model = family, captor.model
        self.task: Task = task_of(task, captor, labels=(), targets="all", seed=0)
        labels = ("0.5", "-1") if isinstance(self.task, Regression) else ("good", "bad")
        rng = np.random.default_rng(5)
        ids = rng.integers(5, 60, (2, max(LENGTHS)))
        self.items, self.inputs = [], dict[str, Tensor]()
        for row, length in enumerate(LENGTHS):
            own = tuple(ids[row, :length].tolist())
            special = ("cls", *[None] * (length - 2), "sep")
            none = (None,) * length
            encoded = Encoded(own, ("x",) * length, none, (0,) * length, (0,) * length, special)
            self.items.append(Item(row, f"e{row}", labels[row], "text", None, encoded))
            ids[row, length:] = 0
        if family == "vit":
            self.inputs = {"pixel_values": torch.from_numpy(rng.normal(size=(2, 3, 16, 16)))}
            self.tokens = [17, 17]
        else:
            mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
            self.inputs = {
                "input_ids": torch.from_numpy(ids),
                "attention_mask": torch.from_numpy(mask.astype(np.int64)),
            }
            self.tokens = list(LENGTHS)

    def loss(self, watch: Watch | None = None) -> Tensor:
        """The loss of each example."""
        fed = self.task.inputs(self.items, self.inputs)
        return self.task.score(self.instrument.run(fed, watch), self.items, fed).loss

    def slopes(self) -> list[Slope]:
        return list(slopes(self.instrument, self.task, self.items, self.inputs))

    def gradient(self, slope: Slope, row: int) -> Tensor:
        n = self.tokens[row]
        return torch.cat([gradient for _, _, gradient in slope.blocks(row, n, n)], dim=1)


@contextmanager
def edited(bench: Bench, edits: dict[int, Tensor], seen: list[Tensor] | None = None) -> Iterator[None]:
    """Inside, what is added to the maps of layers by number, in the model file's own eager function.

    Every layer's map goes to `seen`, as autograd sees it.
    """
    file = importlib.import_module(type(bench.model).__module__)
    real, calls = file.eager_attention_forward, 0

    def eager(
        module: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        nonlocal calls
        _, weights = real(module, query, key, value, *args, **kwargs)
        if calls in edits:
            weights = weights + edits[calls]
        if seen is not None:
            weights = weights.detach().requires_grad_() if not weights.requires_grad else weights
            weights.retain_grad()
            seen.append(weights)
        calls += 1
        return (weights @ value).transpose(1, 2).contiguous(), weights

    file.eager_attention_forward = eager  # type: ignore[attr-defined]
    try:
        yield
    finally:
        file.eager_attention_forward = real  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def maps_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some families round their maps to float32 on the way, which central differences would show as noise."""
    real = torch.nn.functional.softmax
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda scores, dim, dtype=None: real(scores, dim))


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made: dict[tuple[str, str], Bench] = {}

    def bench(family: str, task: str) -> Bench:
        if (family, task) not in made:
            made[family, task] = Bench(tmp_path_factory.mktemp(family), family, task)
        return made[family, task]

    return bench
