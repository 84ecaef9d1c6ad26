"""This file runs a model while the outputs of its heads are watched or replaced."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from attnstore.capture.blocks import Blocks
from attnstore.capture.captor import Captor, arguments
from attnstore.capture.circuits import Circuit, find_circuits
from attnstore.capture.handover import Receive

Inputs = Mapping[str, Tensor]
"""What a model is fed, each tensor [example, token] or [example, channel, row, column]."""


class Watch:
    """What happens at each layer of a pass, in this order; a subclass takes what it wants.

    Tensors are on the model's device, padding included.
    """

    def wants(self, circuit: Circuit) -> bool:
        """Whether `values` of this layer are asked for; picking them out costs time."""
        return True

    def stream(self, circuit: Circuit, hidden: Tensor) -> None:
        """[batch, query, hidden] that the layer's output is added to; not for cross-attention."""

    def values(self, circuit: Circuit, values: Tensor) -> None:
        """[batch, head, key, item]: what each head moves, before W_O."""

    def heads(self, circuit: Circuit, outputs: Tensor) -> Tensor | None:
        """[batch, head, query, item]: the maps times the values; another tensor takes its place if one is returned."""

    def attended(self, circuit: Circuit, output: Tensor) -> None:
        """[batch, query, hidden] after W_O and its bias."""

    def summed(self, circuit: Circuit, hidden: Tensor) -> None:
        """[batch, query, hidden] that the norm after the heads takes in; post-norm models only."""


class Instrument:
    """A captor's model with its circuits, in the order in which a pass reaches them. Not for two threads at once."""

    def __init__(self, captor: Captor) -> None:
        self.captor, self.model = captor, captor.model
        self.circuits = find_circuits(captor)
        self.blocks = Blocks(self.model, [circuit.output for circuit in self.circuits])

    def run(
        self,
        inputs: Inputs,
        watch: Watch | None = None,
        *,
        receive: Receive | None = None,
        start: int = 0,
    ) -> Any:
        """One forward pass to the end; the model's output.

        `receive` takes the maps, as `Captor.run` gives them. `start` is the first block that is computed: what those
        before gave is taken from the last pass that `blocks.keep` watched. Gradients are on where the caller has them.
        """
        with self.watching(watch, start=start):
            if receive is not None:
                return self.captor.run_whole(inputs, receive)
            return self.model(**arguments(self.model, inputs))

    @contextmanager
    def watching(self, watch: Watch | None, *, start: int = 0) -> Iterator[None]:
        """Inside, whoever calls the model has its passes watched; with a `start` one pass alone."""
        with ExitStack() as stack:
            skipped = stack.enter_context(self.blocks.skipping(start))
            if watch is not None:
                stack.enter_context(self._watched(watch, skipped))
            yield

    @contextmanager
    def _watched(self, watch: Watch, skipped: int) -> Iterator[None]:
        """Hooks that count the layers by the calls of their modules, which layers may share.

        A module that is not the layer's in turn is that of the next layer that has it: another pass began, or one of
        the decoder alone.
        """
        place = skipped

        def current() -> Circuit:
            return self.circuits[place % len(self.circuits)]

        def seek(holds: Callable[[Circuit], bool]) -> None:
            nonlocal place
            every = range(place, place + len(self.circuits))
            place = next(at for at in every if holds(self.circuits[at % len(self.circuits)])) % len(self.circuits)

        def on_values(module: nn.Module, args: Any, output: Tensor) -> None:
            seek(lambda circuit: circuit.value.module is module)
            if watch.wants(current()):
                watch.values(current(), current().value.pick(output))
            if current().before is None and current().is_self:
                watch.stream(current(), args[0])

        def on_stream(module: nn.Module, args: Any, output: Tensor) -> None:
            if current().before is module:
                watch.stream(current(), args[0])

        def on_heads(module: nn.Module, args: Any) -> Any:
            seek(lambda circuit: circuit.output is module)
            given: Tensor = args[0]
            outputs = given.reshape(*given.shape[:-1], *current().value.columns.shape).transpose(1, 2)
            new = watch.heads(current(), outputs)
            return None if new is None else (new.transpose(1, 2).flatten(2), *args[1:])

        def on_attended(module: nn.Module, args: Any, output: Tensor) -> None:
            nonlocal place
            watch.attended(current(), output)
            place += 1

        def on_summed(module: nn.Module, args: Any, output: Tensor) -> None:
            if place > skipped and self.circuits[place - 1].after is module:
                watch.summed(self.circuits[place - 1], args[0])

        hooks = []
        for module in _distinct(circuit.before for circuit in self.circuits):
            hooks.append(module.register_forward_hook(on_stream))
        for module in _distinct(circuit.value.module for circuit in self.circuits):
            hooks.append(module.register_forward_hook(on_values))
        for module in _distinct(circuit.output for circuit in self.circuits):
            hooks.append(module.register_forward_pre_hook(on_heads))
            hooks.append(module.register_forward_hook(on_attended))
        for module in _distinct(circuit.after for circuit in self.circuits):
            hooks.append(module.register_forward_hook(on_summed))
        try:
            yield
        finally:
            for one in hooks:
                one.remove()


def _distinct(modules: Iterator[nn.Module | None]) -> list[nn.Module]:
    return list({id(module): module for module in modules if module is not None}.values())


def on_device(instrument: Instrument, inputs: Inputs) -> Inputs:
    """The inputs where the model is."""
    return {name: value.to(instrument.model.device) for name, value in inputs.items()}


def real_tokens(inputs: Inputs, side: str, tokens: int) -> Tensor:
    """Which tokens of a side are no padding [batch, token], on the device of the inputs."""
    mask = inputs.get("attention_mask" if side == "source" else "decoder_attention_mask")
    if mask is None:
        first = next(iter(inputs.values()))
        return torch.ones(len(first), tokens, dtype=torch.bool, device=first.device)
    return mask.bool()
