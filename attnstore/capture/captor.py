"""This file runs a model and hands over its attention maps one layer at a time."""

import contextlib
import inspect
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from attnstore.capture.classes import n_types_of
from attnstore.capture.device import Rounding, as_floats
from attnstore.capture.encode import Encoder
from attnstore.capture.facts import ModelFacts
from attnstore.capture.handover import Complete, Handover, Receive, Shape
from attnstore.errors import BadInput, NotCaptured


class Road(Protocol):
    """One way of getting at the maps of a forward pass."""

    name: str

    def forward(self, inputs: Mapping[str, Any], hand: Handover) -> Any: ...


class Captor:
    """A loaded model: `facts`, `encoder` and `run`. Not for two threads at once."""

    def __init__(self, model: PreTrainedModel, facts: ModelFacts, encoder: Encoder | None, road: Road) -> None:
        self.facts = facts
        self.model = model.train(False)
        self._encoder, self._road = encoder, road

    @property
    def encoder(self) -> Encoder:
        """The model's tokenizer; raises BadInput for a model that reads images."""
        if self._encoder is None:
            raise BadInput(f"tokenizing for {self.facts.name}", "the model reads images", "a model that reads text")
        return self._encoder

    def run(self, inputs: Mapping[str, Tensor], receive: Receive, *, rounding: Rounding = as_floats) -> None:
        """One forward pass, dropout off; calls `receive(kind, layer, weights)` as each layer finishes.

        `weights` is a new float32 array [batch, head, query, key] on the CPU, one map per query head, padding
        included; it is not kept here, so that at most two layers are alive at once. Layers count from 0 within a
        kind; in a model with two stacks the decoder's and the cross maps take turns. What `receive` raises comes
        through. `rounding` turns them into codes on the model's device. Raises BadInput for an input the model does not
        take, NotCaptured if a layer is missing or misshapen.
        """
        hand = Handover(self.facts.name, self._shapes(inputs), self.facts.kinds, receive, rounding=rounding)
        with torch.inference_mode(), contextlib.suppress(Complete):
            self._road.forward(arguments(self.model, inputs), hand)
        hand.finish()

    def run_whole(self, inputs: Mapping[str, Tensor], receive: Receive) -> Any:
        """Like `run`, but to the end of the model, whose output comes back, and with gradients if they are on."""
        hand = Handover(self.facts.name, self._shapes(inputs), self.facts.kinds, receive, to_the_end=True)
        output = self._road.forward(arguments(self.model, inputs), hand)
        hand.finish()
        return output

    def _shapes(self, inputs: Mapping[str, Tensor]) -> dict[str, Shape]:
        lengths = {}
        for name, side in (("input_ids", "source"), ("decoder_input_ids", "target")):
            if name in inputs:
                lengths[side] = inputs[name].shape[1]
        if "pixel_values" in inputs and self.facts.max_length is not None:
            lengths["source"] = self.facts.max_length
        most = self.facts.max_length
        longest = max(lengths.values(), default=0)
        if most is not None and longest > most:
            raise BadInput(
                f"running {self.facts.name}", f"an input of {longest} tokens", f"at most {most}", "Cut it into windows"
            )
        batch = len(next(iter(inputs.values())))
        for kind, facts in self.facts.kinds.items():
            for side in (facts.queries, facts.keys):
                if side not in lengths:
                    raise NotCaptured(
                        f"running {self.facts.name}",
                        f"no {side} tokens among {', '.join(sorted(inputs))}",
                        f"{side} tokens for its {kind} maps",
                        "Give a target text to a model with a decoder, images to a vision model",
                    )
        return {
            kind: (batch, facts.heads, lengths[facts.queries], lengths[facts.keys])
            for kind, facts in self.facts.kinds.items()
        }


def arguments(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> dict[str, Any]:
    """The keyword arguments of a forward pass: `inputs` on the model's device, its cache off.

    Token types are left out for a model that tells none apart; GPT-2 would look them up among its words. Raises
    BadInput for an input that it does not take.
    """
    if n_types_of(model, model.config) == 0:
        inputs = {name: value for name, value in inputs.items() if name != "token_type_ids"}
    known = set(inspect.signature(model.forward).parameters)
    unknown = sorted(set(inputs) - known)
    if unknown:
        raise BadInput(
            f"running a {type(model).__name__}",
            f"inputs that it does not take: {', '.join(unknown)}",
            f"some of {', '.join(sorted(known - {'kwargs'}))}",
        )
    ready: dict[str, Any] = {name: value.to(model.device) for name, value in inputs.items()}
    if "use_cache" in known:
        ready["use_cache"] = False
    return ready
