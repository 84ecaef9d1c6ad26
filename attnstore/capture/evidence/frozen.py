"""This file freezes the scale of a norm, so that its output is a sum over what went into its input."""

import torch
from torch import Tensor, nn

from attnstore.errors import NotCaptured


class FrozenNorm:
    """The norm of a sum, by its parts: `part / sigma` of every part add up to its output, but for its bias.

    Sigma is that of the whole vector (Kobayashi et al. 2021). It is read off what the norm gives, so that neither its
    epsilon nor its formula need be known.
    """

    def __init__(self, norm: nn.Module, size: int, device: torch.device) -> None:
        self._norm = norm
        weight: Tensor | None = getattr(norm, "weight", None)
        self._weight = torch.ones(size, device=device) if weight is None else weight.detach()
        self._offset = self._of(torch.zeros(1, size, device=device, dtype=self._weight.dtype))
        probe = torch.linspace(-1, 2, size, device=device, dtype=self._weight.dtype).square()[None]
        self._centres = bool(torch.allclose(self._of(probe), self._of(probe + 3), atol=1e-2))

    def direction(self, part: Tensor) -> Tensor:
        """[…, hidden] of a part of the input: what the norm makes of it, sigma aside."""
        centred = part - part.mean(-1, keepdim=True) if self._centres else part
        return centred * self._weight

    def scale(self, whole: Tensor) -> Tensor:
        """1 / sigma [batch, token] of whole inputs [batch, token, hidden]; NotCaptured for a norm of another kind."""
        given, way = self._of(whole) - self._offset, self.direction(whole)
        scale = (given * way).sum(-1) / way.square().sum(-1).clamp(min=1e-30)
        if not torch.allclose(given, way * scale[..., None], atol=1e-3):
            raise NotCaptured(
                "splitting what a norm takes in",
                f"{type(self._norm).__name__}, which does more than take off the mean, scale and add",
                "a layer norm or a root mean square norm",
                "Leave mixing and grams out of keep.evidence",
            )
        return scale

    def _of(self, vectors: Tensor) -> Tensor:
        # Not by a call, which the hooks of whoever watches the norm would take for one of the model's.
        found: Tensor = self._norm.forward(vectors)
        return found
