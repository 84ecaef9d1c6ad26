"""This file bounds the memory of a backward pass: what does not fit waits in files until it is needed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

HELD_BYTES = 512 * 2**20
"""Bytes of one pass that are held; with 12 layers of 16 MiB of maps, which autograd keeps twice, this is all of it."""

_SMALL = 2**20


@dataclass(frozen=True, slots=True)
class _Filed:
    path: Path
    device: torch.device


Kept = Tensor | _Filed


class Shelf:
    """Tensors by what `put` gives for them: in memory up to a bound, beyond it in `folder`. Parameters do not count."""

    def __init__(self, folder: Path, model: nn.Module, most: int) -> None:
        self._folder, self._left = folder, most
        self._model = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
        self.files = 0

    def put(self, tensor: Tensor) -> Kept:
        """What `get` turns into the tensor again."""
        size = tensor.numel() * tensor.element_size()
        if size < _SMALL or tensor.untyped_storage().data_ptr() in self._model:
            return tensor.detach()
        if size <= self._left:
            self._left -= size
            return tensor.detach()
        path = self._folder / f"{self.files}.npy"
        self.files += 1
        np.save(path, tensor.detach().cpu().numpy())
        return _Filed(path, tensor.device)

    def get(self, kept: Kept) -> Tensor:
        """The tensor, on the device where it was."""
        return kept if isinstance(kept, Tensor) else torch.from_numpy(np.load(kept.path)).to(kept.device)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Passes inside have gradients, and autograd keeps here what it will need for them."""
        with torch.enable_grad(), saved_tensors_hooks(self.put, self.get):
            yield


@contextmanager
def shelf(model: nn.Module, most: int | None = None) -> Iterator[Shelf]:
    """A shelf of `most` bytes (HELD_BYTES for None), whose files go at the end."""
    with tempfile.TemporaryDirectory(prefix="attnstore-") as folder:
        yield Shelf(Path(folder), model, HELD_BYTES if most is None else most)
