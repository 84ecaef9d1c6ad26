"""This file asks of every layer whether a position still means the token that it started from."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Likeness:
    """Of each state, the first block's input first, arrays [batch, token] by kind, padding included.

    `cosine` is that of a token with what it was at first, `nearest` the token whose beginning it is most like (the
    lowest on a tie; Brunner et al. 2020), `length` its own. Special tokens are candidates, padding is none.
    """

    cosine: dict[str, list[Floats]] = field(default_factory=dict)
    nearest: dict[str, list[NDArray[np.int64]]] = field(default_factory=dict)
    length: dict[str, list[Floats]] = field(default_factory=dict)


class Beginnings:
    """Takes the states of a pass in turn, and holds none of them but the first of each kind."""

    def __init__(self) -> None:
        self.found = Likeness()
        self._first: dict[str, Tensor] = {}

    def take(self, kind: str, hidden: Tensor, real: Tensor) -> None:
        """The next state [batch, token, hidden] of a kind; `real` [batch, token] tells padding."""
        own = torch.nn.functional.normalize(hidden.float(), dim=-1)
        like = own @ self._first.setdefault(kind, own).transpose(1, 2)
        self._add(kind, like.diagonal(dim1=1, dim2=2), like.masked_fill(~real[:, None], -torch.inf).argmax(-1), hidden)

    def _add(self, kind: str, cosine: Tensor, nearest: Tensor, hidden: Tensor) -> None:
        self.found.cosine.setdefault(kind, []).append(cosine.cpu().numpy())
        self.found.nearest.setdefault(kind, []).append(nearest.cpu().numpy())
        self.found.length.setdefault(kind, []).append(hidden.float().norm(dim=-1).cpu().numpy())
