"""This file measures how much of each token its layer keeps and how much it mixes in from other tokens."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.frozen import FrozenNorm
from attnstore.capture.evidence.identity import Beginnings, Likeness
from attnstore.capture.instrument import Inputs, Instrument, Watch, real_tokens

Floats = NDArray[np.float32]

COLUMNS = (
    *("self_weight", "mix_norm", "pres_norm", "pres_norm_res", "mix_norm_ln", "pres_norm_ln"),
    *("x_norm", "out_norm", "cosine"),
)
"""What is measured of each token at each layer; see `mixing`."""


@dataclass(slots=True)
class Mixing:
    """`parts` [column of COLUMNS, batch, token] by kind, a layer each, and the likeness of the states between them."""

    parts: dict[str, list[Floats]] = field(default_factory=dict)
    likeness: Likeness = field(default_factory=Likeness)


def mixing(instrument: Instrument, inputs: Inputs) -> Mixing:
    """What each layer of self-attention mixes into a token and keeps of it, in one pass (Kobayashi et al. 2021).

    A token's weight to itself, mean over heads. With v_ij what all heads together take from token j to token i: the
    length of the sum of v_ij over j other than i, that of v_ii, and that of v_ii + x_i, the token's stream (NaN where
    the model does not add them as they are). Both after the norm of the sum, its scale frozen; NaN in a model that has
    none. The length of x_i, that of the layer's output, b_O added, and the cosine of the two. b_O and the bias of the
    norm are in no part.
    """
    watch = _Mixing(instrument, inputs)
    with torch.inference_mode(), watch.last_states():
        instrument.run(inputs, watch, receive=watch.receive)
    return watch.finished()


_Held = dict[str, Tensor]
"""What came of a layer so far: its map's diagonal, its stream, values, heads, output, and the sum that a norm takes."""


class _Mixing(Watch):
    """Layers are done in any order: on some roads a map comes before its values, on others after the whole layer."""

    def __init__(self, instrument: Instrument, inputs: Inputs) -> None:
        self.instrument, self.inputs = instrument, inputs
        self.circuits = {(one.kind, one.layer): one for one in instrument.circuits if one.is_self}
        self.done: dict[tuple[str, int], Floats] = {}
        self.beginnings = Beginnings()
        self._open: dict[tuple[str, int], _Held] = {}
        self._norms: dict[int, FrozenNorm] = {}
        self._last: dict[str, Tensor] = {}

    def receive(self, kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        """Take a map [batch, head, query, key]; nothing but its diagonal is needed."""
        if (circuit := self.circuits.get((kind, layer))) is not None:
            diagonal = torch.from_numpy(weights.diagonal(axis1=2, axis2=3).copy())
            self._held(circuit)["diagonal"] = diagonal.to(self.instrument.model.device)
            self._finish(circuit)

    def stream(self, circuit: Circuit, hidden: Tensor) -> None:
        self._held(circuit)["stream"] = hidden
        self.beginnings.take(circuit.kind, hidden, self._real(circuit.kind, hidden))

    def values(self, circuit: Circuit, values: Tensor) -> None:
        if circuit.is_self:
            self._held(circuit)["values"] = values

    def heads(self, circuit: Circuit, outputs: Tensor) -> None:
        if circuit.is_self:
            self._held(circuit)["heads"] = outputs

    def attended(self, circuit: Circuit, output: Tensor) -> None:
        if circuit.is_self:
            self._held(circuit)["output"] = output
            self._finish(circuit)

    def summed(self, circuit: Circuit, hidden: Tensor) -> None:
        if circuit.is_self:
            self._held(circuit)["summed"] = hidden
            self._finish(circuit)

    @contextmanager
    def last_states(self) -> Iterator[None]:
        """Inside, what the last block of each kind gives is held: the stream that no norm has touched any more."""
        hooks = []
        for kind, output in {one.kind: one.output for one in self.circuits.values()}.items():
            block = self.instrument.blocks.around(output)
            if block is not None:
                hooks.append(block.register_forward_hook(self._keeping(kind)))
        try:
            yield
        finally:
            for one in hooks:
                one.remove()

    def finished(self) -> Mixing:
        """Everything, once the pass is over."""
        for kind, last in self._last.items():
            self.beginnings.take(kind, last, self._real(kind, last))
        found = Mixing(likeness=self.beginnings.found)
        for kind, layer in sorted(self.done):
            found.parts.setdefault(kind, []).append(self.done[kind, layer])
        return found

    def _keeping(self, kind: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            # Called once for each of the layers that share a block; the last of them stays.
            given = [output] if isinstance(output, Tensor) else output
            self._last[kind] = next(one for one in given if isinstance(one, Tensor) and one.dim() == 3)

        return hook

    def _real(self, kind: str, hidden: Tensor) -> Tensor:
        side = self.instrument.captor.facts.kinds[kind].queries
        return real_tokens(self.inputs, side, hidden.shape[1]).to(hidden.device)

    def _held(self, circuit: Circuit) -> _Held:
        return self._open.setdefault((circuit.kind, circuit.layer), {})

    def _finish(self, circuit: Circuit) -> None:
        held = self._held(circuit)
        if not {"diagonal", "output", *(["summed"] if circuit.after is not None else [])} <= set(held):
            return
        self.done[circuit.kind, circuit.layer] = self._measured(circuit, held).cpu().numpy()
        del self._open[circuit.kind, circuit.layer]

    def _measured(self, circuit: Circuit, held: _Held) -> Tensor:
        """[column, batch, token]; see `mixing`."""
        diagonal, x, output = held["diagonal"], held["stream"], held["output"]
        # One product moves a token's own part of all heads: sum_h A_h[i,i] v_h[i] W_O, without [head, token, hidden].
        own = diagonal[..., None].to(held["values"].dtype) * held["values"]
        kept, mixed = (torch.einsum("bhti,hio->bto", part, circuit.w_output) for part in (own, held["heads"] - own))
        lengths = [part.float().norm(dim=-1) for part in (mixed, kept, kept + x)]
        if not circuit.adds:
            lengths[2] = torch.full_like(lengths[0], torch.nan)
        if circuit.after is None:
            lengths += [torch.full_like(lengths[0], torch.nan)] * 2
        else:
            if id(circuit.after) not in self._norms:  # which layers may share
                self._norms[id(circuit.after)] = FrozenNorm(circuit.after, x.shape[-1], x.device)
            norm = self._norms[id(circuit.after)]
            scale = norm.scale(held["summed"])
            lengths += [norm.direction(part).float().norm(dim=-1) * scale for part in (mixed, kept + x)]
        lengths += [part.float().norm(dim=-1) for part in (x, output)]
        return torch.stack([diagonal.mean(1), *lengths, torch.cosine_similarity(x.float(), output.float(), dim=-1)])
