"""This file takes each map of one forward pass, checks it, hands it over and lets it go."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from attnstore.capture.device import Copy, Rounding, as_floats
from attnstore.capture.facts import KindFacts
from attnstore.errors import NotCaptured

Receive = Callable[[str, int, NDArray[Any]], None]
"""Called with kind, layer and weights [batch, head, query, key] in float32, or their codes, as each layer finishes."""

Shape = tuple[int, int, int, int]


class Complete(Exception):
    """Raised out of the forward pass once every map was handed over: what the model does after its last is not needed.

    It is most of a layer: the last values, output and feed-forward parts are a seventh of a pass through 6 layers.
    """


class Handover:
    """The layers of one forward pass, numbered per kind in the order in which they come.

    The number is counted and not read from the module: several families keep no `layer_idx`, and layers that share
    parameters are one module.
    """

    def __init__(
        self,
        model: str,
        shapes: Mapping[str, Shape],
        kinds: Mapping[str, KindFacts],
        receive: Receive,
        *,
        to_the_end: bool = False,
        rounding: Rounding = as_floats,
    ) -> None:
        self.shapes = shapes
        self._to_the_end, self._rounding = to_the_end, rounding
        self._travelling: deque[tuple[str, int, Copy]] = deque()
        self._doing = f"capturing the attention maps of {model}"
        self._expected = {kind: kinds[kind].layers for kind in shapes}
        self._taken = dict.fromkeys(shapes, 0)
        self._receive = receive

    def take(self, kind: str, weights: Tensor) -> None:
        """Hands over the next layer of `kind`, and raises Complete after the last of all kinds unless `to_the_end`.

        Raises NotCaptured on a map that is not [batch, head, query, key].
        """
        layer = self._taken.get(kind)
        if layer is None:
            raise NotCaptured(self._doing, f"a map of kind {kind!r}", f"only {', '.join(self.shapes)}")
        if tuple(weights.shape) != self.shapes[kind]:
            raise NotCaptured(
                self._doing,
                f"the {kind} map of layer {layer} has shape {list(weights.shape)}",
                f"[batch, head, query, key] = {list(self.shapes[kind])}",
                "Heads that differ between layers and maps that are not one weight per key cannot be stored",
            )
        self._taken[kind] = layer + 1
        # Off the device at once: the maps of all layers together need not fit there. The newest is not waited for, so
        # that the device computes the next layer meanwhile.
        self._travelling.append((kind, layer, Copy(self._rounding(weights.detach()))))
        self._deliver(0 if self._travelling[-1][2].is_there or self._to_the_end else 1)
        if self._taken == self._expected and not self._to_the_end:
            raise Complete

    def _deliver(self, left: int) -> None:
        while len(self._travelling) > left:
            kind, layer, copy = self._travelling.popleft()
            self._receive(kind, layer, copy.wait())

    def finish(self) -> None:
        """Hands over what is still under way.

        Raises NotCaptured unless every layer of every kind came; some models accept capture and give nothing.
        """
        self._deliver(0)
        if self._taken != self._expected:
            raise NotCaptured(
                self._doing,
                f"maps came from {_counts(self._taken)}",
                _counts(self._expected),
                "The model routes its attention elsewhere",
            )


def _counts(layers: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind} layers" for kind, count in layers.items())
