"""This file asks how the loss of each example changes with every weight of its maps, one layer at a time.

A head hands on z = A V, so the gradient needs no graph through the maps: dLoss/dA[i, j] = <dLoss/dz[i], v[j]>.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.shelf import Kept, shelf
from attnstore.capture.instrument import Inputs, Instrument, Watch
from attnstore.capture.tasks import Item, Task
from attnstore.errors import NotCaptured

Doubles = NDArray[np.float64]

BLOCK_CELLS = 2**20
"""Cells, over all heads, whose gradients are there at a time."""

SUMS = ("abs_gradient", "gradient_weight", "abs_gradient_weight", "weight")
"""What `Slope.class_sums` sums: |G|, A G, |A G| and A."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The heads of one layer in a pass, and how a number of each example changes with what they hand on.

    `weights` [batch, head, query, key] and `values` [batch, head, key, item]; `outputs` is the maps times the values,
    `slope` the derivative by it, both [batch, head, query, item]. Padding included. `scored` [batch] says which
    examples have such a number, `is_causal` that queries see no later keys.
    """

    circuit: Circuit
    weights: Tensor
    values: Tensor
    outputs: Tensor
    slope: Tensor
    scored: Tensor
    is_causal: bool

    def blocks(self, row: int, queries: int, keys: int) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some queries, their weights and the derivatives by these [head, query, key], for one example of the batch.

        0 where a causal map has no weight.
        """
        step = max(1, BLOCK_CELLS // (self.circuit.heads * keys))
        for start in range(0, queries, step):
            some = slice(start, min(start + step, queries))
            gradient = self.slope[row, :, some] @ self.values[row, :, :keys].transpose(1, 2)
            if self.is_causal:
                gradient = gradient.tril(start)
            yield some, self.weights[row, :, some, :keys].to(gradient), gradient

    def is_finite(self, row: int, queries: int, keys: int) -> bool:
        """Whether an example of the batch has derivatives by its weights, and every one is a number."""
        parts = (self.slope[row, :, :queries], self.values[row, :, :keys])
        return bool(self.scored[row]) and all(bool(part.isfinite().all()) for part in parts)

    def class_sums(self, row: int, queries: Doubles, keys: Doubles) -> dict[str, Doubles]:
        """Each of SUMS over pairs of classes [head, query class, key class], for one example of the batch.

        `queries` [query, class] and `keys` [key, class] are 1 where a token is of a class, else 0.
        """
        of_query, of_key = (torch.from_numpy(one).to(self.slope) for one in (queries, keys))
        sums = {name: np.zeros((self.circuit.heads, queries.shape[1], keys.shape[1])) for name in SUMS}
        for some, weights, gradient in self.blocks(row, len(queries), len(keys)):
            product = weights * gradient
            for name, block in zip(SUMS, (gradient.abs(), product, product.abs(), weights), strict=True):
                to_class = (block @ of_key).double()  # [head, query, key class]
                sums[name] += (of_query[some].T.double() @ to_class).cpu().numpy()
        return sums

    def gates(self, row: int, queries: int) -> Doubles:
        """[head, query]: by how much a gate on the head's output at a query, now 1, changes the number.

        Its sum over queries is that of A G over all pairs: <z, dLoss/dz>, the first-order importance of the head
        (Michel et al. 2019).
        """
        products = self.outputs[row, :, :queries] * self.slope[row, :, :queries]
        found: Doubles = products.sum(-1, dtype=torch.float64).cpu().numpy()
        return found


class _Keep(Watch):
    """Keeps what every layer hands on, with gradients."""

    def __init__(self) -> None:
        self.handed: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def values(self, circuit: Circuit, values: Tensor) -> None:
        self.handed.append(values.detach())

    def heads(self, circuit: Circuit, outputs: Tensor) -> Tensor:
        # Of the first layer: no parameter asks for a gradient, so that the graph begins here.
        self.outputs.append(outputs if outputs.requires_grad else outputs.requires_grad_())
        return outputs


def slopes(instrument: Instrument, task: Task, batch: Sequence[Item], inputs: Inputs) -> Iterator[Slope]:
    """How the loss of each example changes with the heads of each layer, in the order of a pass.

    A loss is the mean over an example's own targets, and losses are added up, so that no example bears on another's
    derivatives. Raises NotCaptured where the task's loss has no gradient.
    """
    instrument.model.requires_grad_(False)
    fed, watch, maps = task.inputs(batch, inputs), _Keep(), list[Kept]()
    with shelf(instrument.model) as kept:

        def receive(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
            maps.append(kept.put(torch.from_numpy(weights)))

        with kept.recording():
            scored = task.score(instrument.run(fed, watch, receive=receive), batch, fed)
            total = scored.loss[scored.n > 0].sum()
            if not total.requires_grad:
                raise NotCaptured(
                    "taking the gradient of the loss",
                    "a loss that is computed without gradients",
                    "one that depends on the heads' outputs by way of tensors",
                    "Leave gradients and importance out of keep.evidence, or name another task",
                )
            found = torch.autograd.grad(total, watch.outputs, materialize_grads=True)
        of_layers = zip(instrument.circuits, maps, watch.handed, watch.outputs, found, strict=True)
        for circuit, weights, values, outputs, slope in of_layers:
            is_causal = instrument.captor.facts.kinds[circuit.kind].causal
            yield Slope(circuit, kept.get(weights), values, outputs.detach(), slope, scored.n > 0, is_causal)
