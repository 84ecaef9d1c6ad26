"""This file measures how what the heads take from one token goes together: the Gram matrices of their vectors."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.frozen import FrozenNorm
from attnstore.capture.instrument import Inputs, Instrument, Watch

Floats = NDArray[np.float32]

_TOKENS = 256
"""Tokens whose vectors of all heads are held at a time."""


@dataclass(slots=True)
class LayerGrams:
    """The Gram matrices of one layer, padding included; what does not exist is None.

    `gram` [batch, token, pair] of f_h(x) = (x W_V + b_V) W_O, for pairs of heads h <= h' row by row; `stream` [batch,
    token, head] of f_h(x) with the stream x; `square` [batch, token] of x with itself. The same of gamma * (vector -
    its mean) as `…_ln`, and `scale` [batch, token], 1 / sigma of the whole vector that the norm takes in.
    """

    gram: Floats
    stream: Floats | None = None
    square: Floats | None = None
    gram_ln: Floats | None = None
    stream_ln: Floats | None = None
    square_ln: Floats | None = None
    scale: Floats | None = None


def grams(instrument: Instrument, inputs: Inputs) -> dict[str, list[LayerGrams]]:
    """The Gram matrices of every layer by kind, in one pass.

    With a the weights of all heads on a key, |sum_h a_h f_h(x)| is the root of a Gram a (Kobayashi et al. 2020).
    """
    watch = _Grams()
    with torch.inference_mode():
        instrument.run(inputs, watch)
    return watch.found


class _Grams(Watch):
    def __init__(self) -> None:
        self.found: dict[str, list[LayerGrams]] = {}
        self._values = self._stream = torch.empty(0)
        self._norms: dict[int, FrozenNorm] = {}

    def stream(self, circuit: Circuit, hidden: Tensor) -> None:
        self._stream = hidden

    def values(self, circuit: Circuit, values: Tensor) -> None:
        self._values = values

    def attended(self, circuit: Circuit, output: Tensor) -> None:
        if circuit.after is None:
            self._add(circuit, None)

    def summed(self, circuit: Circuit, hidden: Tensor) -> None:
        self._add(circuit, hidden)

    def _add(self, circuit: Circuit, summed: Tensor | None) -> None:
        stream = self._stream if circuit.is_self else None
        norm = None
        if circuit.after is not None and stream is not None:
            if id(circuit.after) not in self._norms:
                self._norms[id(circuit.after)] = FrozenNorm(circuit.after, stream.shape[-1], stream.device)
            norm = self._norms[id(circuit.after)]
        parts = []
        for first in range(0, self._values.shape[2], _TOKENS):
            span = slice(first, first + _TOKENS)
            moved = torch.einsum("bhti,hio->btho", self._values[:, :, span], circuit.w_output)
            vectors = moved if stream is None else torch.cat([moved, stream[:, span, None]], dim=2)
            parts.append([_products(vectors), *([] if norm is None else [_products(norm.direction(vectors))])])
        plain, *normed = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
        scale = None if norm is None or summed is None else norm.scale(summed)
        gram, *rest = _split(plain, circuit.heads, stream is not None)
        rest += [*(_split(normed[0], circuit.heads, True) if normed else (None, None, None)), scale]
        found = LayerGrams(gram.cpu().numpy(), *(None if one is None else one.cpu().numpy() for one in rest))
        self.found.setdefault(circuit.kind, []).append(found)


def _products(vectors: Tensor) -> Tensor:
    """[batch, token, vector, vector] of [batch, token, vector, hidden]."""
    return (vectors @ vectors.transpose(2, 3)).float()


def _split(products: Tensor, heads: int, has_stream: bool) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Upper triangle of the heads, their products with the stream, and that of the stream; the stream comes last."""
    row, column = torch.triu_indices(heads, heads)
    pairs = products[:, :, row, column]
    return (pairs, products[:, :, :heads, heads], products[:, :, heads, heads]) if has_stream else (pairs, None, None)
