"""This file finds, in a loaded model, through which modules the heads of each layer move information.

Nothing is read from names where it can be tried: a projection gives a head its values if the head's map times its
columns is what the head hands on. So fused, interleaved and shared projections are told apart by what they do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from attnstore.capture.calls import Call, Taken, trace
from attnstore.capture.captor import Captor
from attnstore.capture.facts import KindFacts
from attnstore.capture.probe import probe_inputs
from attnstore.errors import NotCaptured

_FIT = 1e-7
"""Largest share of a head's output that its values may leave unexplained, as a ratio of squares."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Some columns [head, item] of a linear module's output, and what is added to them, `offset` [head, item]."""

    module: nn.Module
    columns: Tensor
    offset: Tensor | None = None

    def pick(self, output: Tensor) -> Tensor:
        """[batch, head, token, item] of the module's output [batch, token, column]."""
        heads, items = self.columns.shape
        picked = output[..., self.columns.flatten()].reshape(*output.shape[:-1], heads, items).transpose(1, 2)
        return picked if self.offset is None else picked + self.offset[:, None]

    @property
    def weight(self) -> Tensor:
        """[head, input, item]: what the columns multiply an input with."""
        return weight_of(self.module)[:, self.columns].permute(1, 0, 2)

    @property
    def bias(self) -> Tensor:
        """[head, item]: what the columns add; zeros where there is none."""
        own = getattr(self.module, "bias", None)
        bias = torch.zeros_like(self.columns, dtype=torch.float32) if own is None else own.detach()[self.columns]
        return bias if self.offset is None else bias + self.offset


@dataclass(frozen=True, eq=False)
class Circuit:
    """How the heads of one layer move information: out = sum over heads of map @ (x W_V + b_V) W_O, plus b_O.

    `output` is the module whose input [batch, query, head * item] holds the heads' outputs side by side. `query` and
    `key` are None where they could not be told apart; `is_bilinear` says that the scores are the product of the two
    and nothing else (no rotation, no bias of positions). `before` is the norm whose output the values are made from
    (pre-norm models), `after` the norm of the sum of input and output (post-norm models); either may be None. `adds`
    says that this sum was seen: it is not where the output is scaled or normed first, or other parts are added with it.
    """

    kind: str
    layer: int
    value: Projection
    output: nn.Module
    query: Projection | None
    key: Projection | None
    is_bilinear: bool
    before: nn.Module | None
    after: nn.Module | None
    adds: bool
    is_self: bool

    @property
    def heads(self) -> int:
        """Query heads."""
        return int(self.value.columns.shape[0])

    @cached_property
    def w_output(self) -> Tensor:
        """W_O of each head [head, item, hidden]."""
        return weight_of(self.output).reshape(*self.value.columns.shape, -1)


def weight_of(module: nn.Module) -> Tensor:
    """The weight [input, output] of a linear module, which transformers' Conv1D keeps that way round."""
    weight: Tensor = module.weight  # type: ignore[assignment]
    return weight.detach().T if isinstance(module, nn.Linear) else weight.detach()


def find_circuits(captor: Captor) -> tuple[Circuit, ...]:
    """The circuits of every layer of every kind, in the order in which a forward pass reaches them.

    Raises NotCaptured where the values of a layer's heads come from no linear module, or are not handed to one.
    """
    try:
        return _circuits(captor, stirred=False)
    except NotCaptured:
        # A pruned head, whose values are zero, gives nothing to tell its columns by.
        return _circuits(captor, stirred=True)


def _circuits(captor: Captor, *, stirred: bool) -> tuple[Circuit, ...]:
    inputs = probe_inputs(captor.model, captor.facts)
    found = trace(captor, inputs, stirred=stirred)
    circuits, start = [], 0
    for index, taken in enumerate(found.maps):
        # On some roads a map comes before its heads' output is projected, on others after.
        stop = found.maps[index + 1].place if index + 1 < len(found.maps) else len(found.calls)
        kind = captor.facts.kinds[taken.kind]
        moved = _moved(found.calls[start:stop], taken, kind, _real(inputs, kind.queries, taken.weights))
        if moved is None:
            raise NotCaptured(
                f"finding how the heads of {taken.kind} layer {taken.layer} of {captor.facts.name} move values",
                "no linear module whose output, mixed by the map, is the input of another one",
                "values from one linear module, handed to one",
                "This evidence cannot be had from this architecture: leave it out of keep.evidence",
            )
        circuit, used = moved
        circuits.append(circuit)
        start += used
    return tuple(circuits)


def _moved(calls: Sequence[Call], taken: Taken, kind: KindFacts, real: Tensor) -> tuple[Circuit, int] | None:
    """The circuit behind a map, and how many of the calls it took; None where none of them fits."""
    for place, output in enumerate(calls):
        if output.is_norm or not _fits(output.input, taken.weights, 2, kind.heads):
            continue
        heads = output.input.reshape(*output.input.shape[:-1], kind.heads, -1).transpose(1, 2)
        for value in reversed(calls[:place]):
            if value.is_norm or not _fits(value.output, taken.weights, 3, 1):
                continue
            projection = _matching(taken.weights, heads, value, real)
            if projection is None:
                continue
            earlier = calls[:place]
            query, key = _asking(earlier, value, projection, kind.heads)
            is_self = kind.queries == kind.keys
            later = calls[place + 1 :]
            before, after, adds = _norms(earlier, value, output, later) if is_self else (None, None, False)
            circuit = Circuit(
                taken.kind,
                taken.layer,
                projection,
                output.module,
                query,
                key,
                query is not None and key is not None and _is_bilinear(earlier, query, key, taken.weights, real),
                before,
                after,
                adds,
                is_self,
            )
            return circuit, place + 1
    return None


def _fits(tensor: Tensor, weights: Tensor, axis: int, heads: int) -> bool:
    """Whether a tensor is [batch, token, column] of the map's queries (axis 2) or keys (axis 3)."""
    return (
        tensor.dim() == 3
        and tensor.shape[0] == weights.shape[0]
        and tensor.shape[1] == weights.shape[axis]
        and tensor.shape[2] % heads == 0
    )


def _real(inputs: Mapping[str, Tensor], side: str, weights: Tensor) -> Tensor:
    """Which queries are no padding [batch, query]."""
    mask = inputs.get("attention_mask" if side == "source" else "decoder_attention_mask")
    if mask is None:
        return torch.ones(weights.shape[0], weights.shape[2], dtype=torch.bool)
    return mask.cpu().bool()


def _matching(weights: Tensor, heads: Tensor, value: Call, real: Tensor) -> Projection | None:
    """The columns of `value` that mixed by `weights` [batch, head, query, key] give `heads` [batch, head, query, item].

    What a module adds to its values after projecting them is a constant, since the weights of a row sum to 1.
    """
    columns, offsets = [], []
    source = value.output.double()
    for head in range(weights.shape[1]):
        mixed = (weights[:, head].double() @ source)[real]  # [row, column]
        target = heads[:, head][real].double()  # [row, item]
        level_mixed, level_target = mixed.mean(0), target.mean(0)
        mixed, target = mixed - level_mixed, target - level_target
        energy = target.square().sum(0)
        if not energy.mean() > 0:
            return None
        cost = mixed.square().sum(0) - 2 * target.T @ mixed
        own = cost.argmin(1)
        left = (mixed[:, own] - target).square().sum(0)
        if left.max() > _FIT * energy.mean():
            return None
        columns.append(own)
        offsets.append(level_target - level_mixed[own])
    offset = torch.stack(offsets).float()
    device = weight_of(value.module).device
    is_shifted = bool(offset.abs().max() > 1e-4 * heads.abs().mean())
    return Projection(value.module, torch.stack(columns).to(device), offset.to(device) if is_shifted else None)


def _asking(
    calls: Sequence[Call], value: Call, projection: Projection, heads: int
) -> tuple[Projection | None, Projection | None]:
    """Where queries and keys come from: the other thirds of a fused module, else modules whose names say so."""
    items, columns = projection.columns.shape[1], projection.columns
    if value.output.shape[2] == 3 * columns.numel():
        for step in (columns.numel(), items):  # all queries first, or the three of each head side by side
            if bool((columns - 2 * step >= 0).all()) and columns.min() == 2 * step:
                return Projection(value.module, columns - 2 * step), Projection(value.module, columns - step)
        return None, None
    found: list[Projection | None] = []
    for letter in "qk":
        own = [
            call
            for call in calls
            if not call.is_norm and call.path.rpartition(".")[2].lower().lstrip("_").startswith(letter)
        ]
        width = own[0].output.shape[2] if len(own) == 1 else 0
        shared = width // items if width % items == 0 else 0
        if shared == 0 or heads % shared:
            found.append(None)
            continue
        group = torch.arange(heads, device=columns.device) // (heads // shared)
        place = group[:, None] * items + torch.arange(items, device=columns.device)
        found.append(Projection(own[0].module, place))
    return found[0], found[1]


def _is_bilinear(calls: Sequence[Call], query: Projection, key: Projection, weights: Tensor, real: Tensor) -> bool:
    """Whether softmax of query times key, scaled or not, gives the map."""
    by_module = {id(call.module): call.output for call in calls}
    q, k = (one.pick(by_module[id(one.module)].to(one.columns.device)) for one in (query, key))
    scores = (q @ k.transpose(2, 3)).cpu()
    for scale in (q.shape[-1] ** -0.5, 1.0):
        again = (scores * scale).masked_fill(weights == 0, -torch.inf).softmax(-1)
        if bool((again - weights).transpose(1, 2)[real].abs().max() < 1e-4):
            return True
    return False


def _norms(
    earlier: Sequence[Call], value: Call, output: Call, later: Sequence[Call]
) -> tuple[nn.Module | None, nn.Module | None, bool]:
    """The norm before the heads, or the one after the sum of what goes in and comes out, and whether that sum is seen.

    A block has one of the two. Before: the sum is what the next norm of the block takes in.
    """
    following = next((call for call in later if call.is_norm and call.input.shape == output.output.shape), None)

    def is_sum_with(stream: Tensor) -> bool:
        fits = following is not None and stream.shape == output.output.shape
        return fits and following is not None and torch.allclose(following.input, output.output + stream, atol=1e-5)

    if following is not None and is_sum_with(value.input):
        return None, following.module, True
    for call in reversed(earlier):
        if call.is_norm and call.output.shape == value.input.shape and torch.equal(call.output, value.input):
            return call.module, None, is_sum_with(call.input)
    return None, None, False
