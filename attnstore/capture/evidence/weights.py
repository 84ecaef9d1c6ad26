"""This file takes the matrices of each layer's heads out of a model."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attnstore.capture.circuits import Circuit

Floats = NDArray[np.float64]

_LOUD = 1e3
"""Length of the entries that a norm is probed with: what it adds to a variance does not show."""


class Matrices(NamedTuple):
    """The matrices of a layer's heads, biases left out; heads that share keys and values have the same ones.

    `query`, `key`, `value` [head, input, item], `output` [head, item, hidden]; no query and key where they could not
    be told apart. `gain` [input] is what the norm before them multiplies with; None where there is no such norm.
    """

    query: Floats | None
    key: Floats | None
    value: Floats
    output: Floats
    gain: Floats | None


def matrices(circuit: Circuit) -> Matrices:
    """The matrices of the heads of one layer, as the model holds them."""
    return Matrices(
        None if circuit.query is None else _double(circuit.query.weight),
        None if circuit.key is None else _double(circuit.key.weight),
        _double(circuit.value.weight),
        _double(circuit.w_output),
        None if circuit.before is None else gain(circuit.before, circuit.value.weight),
    )


def gain(norm: nn.Module, like: Tensor) -> Floats:
    """What a norm multiplies its normalised input with [input], tried out: some families keep it less 1.

    `like` [head, input, item] gives the width, the type and the device.
    """
    width = like.shape[1]
    signs = torch.ones(width, dtype=torch.float64)
    signs[1::2] = -1
    if width % 2:  # a mean of 0, so that it does not matter whether the norm takes it out
        signs[-3:] = torch.tensor([1.0, 1.0, -2.0])
    loud = (_LOUD * signs)[None, None].to(like.device, like.dtype)
    with torch.inference_mode():
        raised, lowered = norm(loud), norm(-loud)
    # The difference is free of the bias.
    answered = _double(raised - lowered)[0, 0] / 2
    given = signs.numpy()
    found: Floats = answered * np.sqrt((given**2).mean()) / given
    return found


def _double(tensor: Tensor) -> Floats:
    found: Floats = tensor.detach().double().cpu().numpy()
    return found
