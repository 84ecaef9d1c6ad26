"""This file attributes a class's logit to the weights of one layer's maps, by gradients along a straight path.

Hao et al. 2021 (AttAttr): the maps of one layer are scaled from 0 to what they are while those below stay, and
IG[i, j] = A[i, j] times the mean over the path of dlogit/dA[i, j]. Scaling A scales the heads' outputs, so that a path
costs passes from that layer's block on, and the mean is taken of dlogit/dz.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.gradients import Slope
from attnstore.capture.evidence.shelf import Kept, shelf
from attnstore.capture.instrument import Inputs, Instrument, Watch
from attnstore.capture.tasks import Classification, Item, Task
from attnstore.errors import BadInput

STEPS = 20
"""Points of a path, as in the paper: the middles of equal pieces, which leave less of the sum out than their ends."""


@dataclass(frozen=True, slots=True)
class Path:
    """The mean derivatives of one layer along its path, and what the path is about.

    `change` [batch] is the logit with the maps as they are, less that with the layer's maps at 0: what the
    attributions of the layer add up to, but for the error of the steps.
    """

    slope: Slope
    change: NDArray[np.float64]

    def blocks(self, row: int, queries: int, keys: int) -> Iterator[NDArray[np.float32]]:
        """The attributions [head, query, key] of one example of the batch, some queries at a time."""
        for _, weights, gradient in self.slope.blocks(row, queries, keys):
            yield (weights * gradient).cpu().numpy()


class _Scale(Watch):
    """Scales the outputs of one layer's heads, and keeps its values."""

    def __init__(self, circuit: Circuit, scale: float) -> None:
        self.circuit, self.scale = circuit, scale
        self.kept: Tensor | None = None
        self.outputs: Tensor | None = None
        self.scaled: Tensor | None = None

    def values(self, circuit: Circuit, values: Tensor) -> None:
        if circuit is self.circuit:
            self.kept = values.detach()

    def heads(self, circuit: Circuit, outputs: Tensor) -> Tensor | None:
        if circuit is not self.circuit:
            return None
        self.outputs = outputs.detach()
        self.scaled = (self.outputs * self.scale).requires_grad_()
        return self.scaled


def classes_of(task: Task, batch: Sequence[Item], logits: Tensor) -> Tensor:
    """The class [batch] whose logit is looked at: the true one, the predicted one of an example without a label."""
    assert isinstance(task, Classification)
    places = (task.place(item) for item in batch)
    predicted = logits.argmax(-1).tolist()
    chosen = [own if place is None else place for place, own in zip(places, predicted, strict=True)]
    return torch.tensor(chosen, device=logits.device)


def check_classes(task: Task | None, evidence: str) -> Classification:
    """The task, if it has classes; BadInput otherwise."""
    if not isinstance(task, Classification):
        raise BadInput(f"adding {evidence}", "a task without classes", "classification, whose logits it is about")
    return task


def paths(
    instrument: Instrument, task: Classification, batch: Sequence[Item], inputs: Inputs, steps: int = STEPS
) -> Iterator[Path]:
    """The path of each layer, in the order of a pass, for the logit of `classes_of`."""
    instrument.model.requires_grad_(False)
    fed, maps = task.inputs(batch, inputs), list[Kept]()
    with shelf(instrument.model) as kept:

        def receive(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
            maps.append(kept.put(torch.from_numpy(weights)))

        with torch.no_grad(), instrument.blocks.keep():
            logits: Tensor = task.score(instrument.run(fed, receive=receive), batch, fed).logits  # type: ignore[assignment]
        chosen = classes_of(task, batch, logits)[:, None]
        whole = logits.gather(1, chosen)[:, 0]

        for place, circuit in enumerate(instrument.circuits):
            start = instrument.blocks.of(place)

            def logit(watch: _Scale, start: int = start) -> Tensor:
                found: Tensor = instrument.run(fed, watch, start=start).logits
                return found.gather(1, chosen)[:, 0]

            watch, total = _Scale(circuit, 0.0), torch.zeros(())
            with torch.no_grad():
                change = whole - logit(watch)
            for step in range(steps):
                watch = _Scale(circuit, (step + 0.5) / steps)
                with shelf(instrument.model) as path_shelf, path_shelf.recording():
                    reached = logit(watch).sum()
                    assert watch.scaled is not None
                    (slope,) = torch.autograd.grad(reached, [watch.scaled], materialize_grads=True)
                total = slope / steps + total.to(slope)
            assert watch.kept is not None
            assert watch.outputs is not None
            scored, is_causal = (
                torch.ones(len(batch), dtype=torch.bool),
                instrument.captor.facts.kinds[circuit.kind].causal,
            )
            yield Path(
                Slope(circuit, kept.get(maps[place]), watch.kept, watch.outputs, total, scored, is_causal),
                change.double().cpu().numpy(),
            )
