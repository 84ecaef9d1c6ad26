"""This file measures how much each head moves: what it takes from a key token, and what it adds to a query token."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.instrument import Inputs, Instrument, Watch

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Lengths:
    """Lengths of vectors by kind, a layer each, padding included.

    `value` [batch, head, key] of (x W_V + b_V) W_O; `output` [batch, head, query] of the head's whole output after W_O;
    `layer` [batch, query] of the outputs of all heads together. Without b_O.
    """

    value: dict[str, list[Floats]] = field(default_factory=dict)
    output: dict[str, list[Floats]] = field(default_factory=dict)
    layer: dict[str, list[Floats]] = field(default_factory=dict)


class _Measure(Watch):
    def __init__(self) -> None:
        self.found = Lengths()

    def values(self, circuit: Circuit, values: Tensor) -> None:
        self.found.value.setdefault(circuit.kind, []).append(_lengths(values, circuit))

    def heads(self, circuit: Circuit, outputs: Tensor) -> None:
        self.found.output.setdefault(circuit.kind, []).append(_lengths(outputs, circuit))
        together = torch.einsum("bhti,hio->bto", outputs, circuit.w_output)
        self.found.layer.setdefault(circuit.kind, []).append(together.norm(dim=-1).cpu().numpy())


def lengths(instrument: Instrument, inputs: Inputs) -> Lengths:
    """What the heads move in one pass (Kobayashi et al. 2020: |weight f(x)| = weight |f(x)|)."""
    watch = _Measure()
    with torch.inference_mode():
        instrument.run(inputs, watch)
    return watch.found


def _lengths(vectors: Tensor, circuit: Circuit) -> Floats:
    """|vector W_O| [batch, head, token], from the Gram of W_O: the products would be hidden / item as large."""
    gram = circuit.w_output @ circuit.w_output.transpose(1, 2)  # [head, item, item]
    squares = torch.einsum("bhti,hij,bhtj->bht", vectors, gram, vectors)
    found: Floats = squares.clamp(min=0).sqrt().cpu().numpy()
    return found
