"""This file says what each head adds to a class's logit directly, past every layer above it.

In a pre-norm model the last stream is a sum: embeddings, and what each layer's heads and feed-forward part add. Where
the classifier is one linear module that reads a token of it (or the mean of all) through a norm, a logit is linear in
that sum once the norm's divisor is taken as it is. Whether a model is so built is found out by trying.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnstore.capture.calls import Call, trace
from attnstore.capture.circuits import Circuit, weight_of
from attnstore.capture.evidence.attributions import classes_of
from attnstore.capture.instrument import Inputs, Instrument, Watch, real_tokens
from attnstore.capture.probe import probe_inputs
from attnstore.capture.tasks import Classification, Item
from attnstore.errors import NotCaptured

_CLOSE = 1e-4
"""Largest difference, as a share of the largest number compared, that rounding in float32 explains."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a classifier reads the last stream: scale * (stream, less its mean where `is_centred`), then `classifier`.

    `gain` [hidden] is what the norm multiplies with, `shift` [hidden] what it adds.
    """

    norm: nn.Module
    classifier: nn.Module
    is_centred: bool
    gain: Tensor
    shift: Tensor

    def scale(self, stream: Tensor, normed: Tensor) -> Tensor:
        """[batch, token]: what the norm divided by, inverted, from what went in and came out."""
        plain = self.centred(stream) * self.gain
        return (plain * (normed - self.shift)).sum(-1) / plain.square().sum(-1)

    def centred(self, stream: Tensor) -> Tensor:
        """The stream, less the mean of each vector where the norm takes that away."""
        return stream - stream.mean(-1, keepdim=True) if self.is_centred else stream

    def directions(self, classes: Tensor) -> Tensor:
        """[batch, hidden]: the vector whose product with a stream, times its scale, is its share of a class's logit."""
        return self.centred(weight_of(self.classifier).T[classes] * self.gain)


class Contribution(NamedTuple):
    """What the heads of one layer add [batch, head] to the logit of the true class, NaN without one, and to that of
    the predicted class."""

    circuit: Circuit
    true: Tensor
    predicted: Tensor


def find_reading(instrument: Instrument) -> Reading:
    """How the model's classifier reads the last stream, tried on a small input.

    Raises NotCaptured, with the reason, where a logit is not the sum of what the layers add.
    """
    calls = trace(instrument.captor, probe_inputs(instrument.model, instrument.captor.facts)).calls
    if post := next((one for one in instrument.circuits if one.before is None), None):
        where = f"{post.kind} layer {post.layer}"
        raise _refused(f"no norm before the heads of {where}, so that norms change what was added before")
    norm = next((call for call in reversed(calls) if call.is_norm), None)
    head = calls[-1]
    if norm is None or head.is_norm or norm.input.shape != norm.output.shape:
        raise _refused("no linear module whose output is the model's last")
    between = calls[calls.index(norm) + 1 : -1]
    if between:
        raise _refused(f"{between[0].path} between the last norm and the classifier, which may bend what it reads")
    _check_sum(instrument, calls, norm)
    return _reading(norm, head)


def _refused(found: str) -> NotCaptured:
    return NotCaptured(
        "splitting logits into what heads add to them",
        found,
        "a pre-norm model whose classifier is one linear module that reads the last stream through a norm",
        "Leave logit_contributions out of keep.evidence; ablations answer the same question for any model",
    )


def _check_sum(instrument: Instrument, calls: Sequence[Call], last: Call) -> None:
    """Raise NotCaptured unless the last stream is the first one and the outputs of linear modules, added up."""
    watch = _Streams()
    with torch.inference_mode():
        instrument.run(probe_inputs(instrument.model, instrument.captor.facts), watch)
    streams = [*watch.streams, last.input]
    for layer, (before, added, after) in enumerate(zip(streams, watch.added, streams[1:], strict=False)):
        left = after - before - added
        outputs = (call.output for call in calls if not call.is_norm and call.output.shape == left.shape)
        if not any(_is_close(left, one) for one in outputs):
            raise _refused(f"that layer {layer} does not add its two outputs to the stream as they are")


class _Streams(Watch):
    def __init__(self) -> None:
        self.streams: list[Tensor] = []
        self.added: list[Tensor] = []

    def stream(self, circuit: Circuit, hidden: Tensor) -> None:
        self.streams.append(hidden.cpu())

    def attended(self, circuit: Circuit, output: Tensor) -> None:
        self.added.append(output.cpu())


def _is_close(one: Tensor, other: Tensor) -> bool:
    return bool((one - other).abs().max() <= _CLOSE * other.abs().max().clamp(min=1e-12))


def _reading(norm: Call, head: Call) -> Reading:
    weight: Tensor = norm.module.weight.detach()  # type: ignore[operator]
    own = getattr(norm.module, "bias", None)
    shift = torch.zeros_like(weight) if own is None else own.detach()
    for is_centred in (True, False):
        for gain in (weight, 1 + weight):
            found = Reading(norm.module, head.module, is_centred, gain, shift)
            stream, normed = (one.to(weight.device) for one in (norm.input, norm.output))
            again = found.scale(stream, normed)[..., None] * found.centred(stream) * gain + shift
            if _is_close(again, normed):
                return found
    raise _refused(f"{type(norm.module).__name__}, which does more than divide, multiply and add")


class _Outputs(Watch):
    """Keeps what every layer's heads hand on."""

    def __init__(self) -> None:
        self.outputs: list[Tensor] = []

    def heads(self, circuit: Circuit, outputs: Tensor) -> None:
        self.outputs.append(outputs)


def contributions(
    instrument: Instrument, reading: Reading, task: Classification, batch: Sequence[Item], inputs: Inputs
) -> Iterator[Contribution]:
    """What each head adds to the logits of each example, layer by layer in the order of a pass.

    NotCaptured where the logits of an example are not those of one token, or of the mean of its tokens.
    """
    fed, watch, seen = task.inputs(batch, inputs), _Outputs(), list[Tensor]()

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        seen.extend((args[0], output))

    hook = reading.norm.register_forward_hook(keep)
    try:
        with torch.inference_mode():
            output = instrument.run(fed, watch)
    finally:
        hook.remove()
    stream, normed = seen[-2:]
    logits: Tensor = task.score(output, batch, fed).logits  # type: ignore[assignment]
    share = _share(reading, normed, logits, real_tokens(fed, "source", normed.shape[1])) * reading.scale(stream, normed)
    predicted = logits.argmax(-1)
    # Without a label there is no true class; the place of the predicted one keeps the shapes.
    true = classes_of(task, batch, logits)
    is_labelled = torch.tensor([task.place(item) is not None for item in batch], device=logits.device)
    for circuit, outputs in zip(instrument.circuits, watch.outputs, strict=True):
        read = torch.einsum("bt,bhti->bhi", share, outputs)
        found = [
            torch.einsum("bhi,hio,bo->bh", read, circuit.w_output, reading.directions(classes))
            for classes in (true, predicted)
        ]
        yield Contribution(circuit, torch.where(is_labelled[:, None], found[0], torch.nan), found[1])


def _share(reading: Reading, normed: Tensor, logits: Tensor, real: Tensor) -> Tensor:
    """[batch, token]: how much of each token the classifier reads, 1 for one token or 1 / n for the mean of n."""
    by_token = normed @ weight_of(reading.classifier)
    bias = getattr(reading.classifier, "bias", None)
    if bias is not None:
        by_token = by_token + bias
    off = (by_token - logits[:, None]).abs().amax(-1)
    single = torch.zeros_like(off).scatter(1, off.argmin(1, keepdim=True), 1.0)
    means = [real / real.sum(1, keepdim=True), torch.ones_like(off) / off.shape[1]]
    for share in (single, *means):
        if _is_close(torch.einsum("bt,btc->bc", share.to(by_token), by_token), logits):
            return share.to(by_token)
    raise _refused("logits that are those of no token, and not of the mean of all")
