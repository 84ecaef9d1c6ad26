"""This file brings a layer's maps from the device to the processor's memory, and can round them before they travel."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnstore.errors import BadInput

Rounding = Callable[[Tensor], Tensor]
"""Codes of weights in 0-1, of the same shape and on the same device."""


class Copy:
    """A tensor on its way to the processor's memory; `wait` gives the array.

    From a CUDA device it travels beside what is computed there next, into pinned memory, of which torch keeps what is
    let go for the next copy. On the processor nothing is copied.
    """

    def __init__(self, tensor: Tensor) -> None:
        tensor = tensor.detach().contiguous()
        self._event: torch.cuda.Event | None = None
        if tensor.device.type == "cuda":
            computed = torch.cuda.current_stream(tensor.device)
            stream = _stream(tensor.device)
            stream.wait_stream(computed)
            with torch.cuda.stream(stream):
                self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
                self._host.copy_(tensor, non_blocking=True)
                self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._event.record(stream)
            tensor.record_stream(stream)  # not to be overwritten before it was read
        else:
            self._host = tensor.cpu()

    @property
    def is_there(self) -> bool:
        """Whether `wait` would give the array at once, as on the processor."""
        return self._event is None

    def wait(self) -> NDArray[np.generic]:
        """The array, once it is there."""
        if self._event is not None:
            self._event.synchronize()
        array: NDArray[np.generic] = self._host.numpy()
        return array


_STREAMS: dict[torch.device, "torch.cuda.Stream"] = {}


def _stream(device: torch.device) -> "torch.cuda.Stream":
    if device not in _STREAMS:
        _STREAMS[device] = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return _STREAMS[device]


def as_floats(weights: Tensor) -> Tensor:
    """Weights in float32, on their device: what facts are computed from."""
    return weights.to(torch.float32)


def _checked(weights: Tensor) -> Tensor:
    weights = weights.to(torch.float32)
    if weights.numel():
        low, high = (float(bound) for bound in torch.aminmax(weights))
        if not (low >= 0.0 and high <= 1.0 + 1e-4):  # NaN fails both
            raise BadInput("rounding weights", f"weights from {low:g} to {high:g}", "numbers in 0-1, none of them NaN")
    return weights.clamp(max=1.0)


def _graded(weights: Tensor) -> Tensor:
    # As format/quantise.py rounds, step by step.
    weights = _checked(weights).contiguous()
    bits = ((weights.view(torch.int32) >> 24) << 23) + ((77 << 23) | 0x400000)
    magic = bits.view(torch.float32)
    return ((weights + magic) - magic).to(torch.float16)


def _square_root(weights: Tensor) -> Tensor:
    return torch.round(torch.sqrt(_checked(weights)) * 255).to(torch.uint8)


ROUNDINGS: Mapping[str, Rounding] = {"standard": _graded, "compact": _square_root, "exact": _checked}
"""How weights become the codes of each precision: the same bits as on the processor. BadInput for what is no weight."""
