"""This file records what the linear modules and norms of a model do in one forward pass, and the maps between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attnstore.capture.captor import Captor


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a linear module or a norm; the tensors are on the CPU."""

    module: nn.Module
    path: str
    is_norm: bool
    input: Tensor
    output: Tensor


@dataclass(frozen=True, slots=True)
class Taken:
    """One map [batch, head, query, key]; `place` is how many calls came before it."""

    kind: str
    layer: int
    weights: Tensor
    place: int


@dataclass(slots=True)
class Trace:
    """Calls and maps of one pass, in order."""

    calls: list[Call] = field(default_factory=list)
    maps: list[Taken] = field(default_factory=list)


def is_linear(module: nn.Module) -> bool:
    """Whether a module multiplies by a matrix."""
    return isinstance(module, nn.Linear | Conv1D)


def is_norm(module: nn.Module) -> bool:
    """Whether a module normalises: families have classes of their own, all named so."""
    return type(module).__name__.endswith("Norm")


def trace(captor: Captor, inputs: Mapping[str, Tensor], *, stirred: bool = False) -> Trace:
    """What a pass over `inputs` does; for small inputs, as all of it is held.

    `stirred` adds waves to what each linear module gives, as large as that is, so that heads whose weights are zero
    move something too; what is recorded is what the modules behind it get.
    """
    found = Trace()

    def receive(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        found.maps.append(Taken(kind, layer, torch.from_numpy(weights), len(found.calls)))

    def record(path: str, norm: bool) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Tensor | None:
            given = args[0] if args else next(iter(kwargs.values()), None)
            if isinstance(given, Tensor) and isinstance(output, Tensor):
                handed_on = output + _waves(output) if stirred and not norm else output
                found.calls.append(Call(module, path, norm, given.cpu(), handed_on.cpu()))
                return handed_on
            return None

        return hook

    hooks = [
        module.register_forward_hook(record(path, is_norm(module)), with_kwargs=True)
        for path, module in captor.model.named_modules()
        if is_linear(module) or is_norm(module)
    ]
    try:
        with torch.inference_mode():
            captor.run_whole(inputs, receive)
    finally:
        for one in hooks:
            one.remove()
    return found


def _waves(output: Tensor) -> Tensor:
    """Numbers of the same shape and size, arbitrary, but the same each time."""
    size = output.abs().mean()
    place = torch.arange(output.numel(), device=output.device, dtype=torch.float32)
    return (place.square().sin() * torch.where(size > 0, size, 1.0)).reshape(output.shape).to(output.dtype)
