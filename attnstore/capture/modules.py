"""This file is the third road: hooks that take the map out of what the attention modules return."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from attnstore.capture.families import family_of
from attnstore.capture.handover import Handover
from attnstore.capture.stacks import is_attention


class Modules:
    """Maps from the attention modules under `output_attentions=True`, each dropped before the next layer."""

    name = "modules"

    def __init__(self, model: PreTrainedModel, kinds: Mapping[nn.Module, str]) -> None:
        model.set_attn_implementation("eager")
        self._model, self._kinds = model, kinds
        self._axes = family_of(model.config.model_type).axes

    def forward(self, inputs: Mapping[str, Any], hand: Handover) -> None:
        """One forward pass whose maps go to `hand`."""

        def take(module: nn.Module, _args: Any, output: Any) -> Any:
            if not isinstance(output, tuple | list):
                return None
            kind = self._kinds[module]
            # From the end: a position bias, where there is one, comes before the map.
            for place in range(len(output) - 1, 0, -1):
                found = output[place]
                if not isinstance(found, Tensor) or found.dim() != 4 or found.numel() == 0:
                    continue
                weights = found.permute(self._axes)
                if not weights.is_floating_point() or tuple(weights.shape) != hand.shapes.get(kind):
                    continue
                hand.take(kind, weights)
                # An empty map in its place: the model collects what its layers return, and an outer module's
                # hook must not take the same map again.
                return type(output)((*output[:place], found.new_empty((0, 0, 0, 0)), *output[place + 1 :]))
            return None

        hooks = [module.register_forward_hook(take) for module in self._kinds if is_attention(module)]
        try:
            self._model(**inputs, output_attentions=True)
        finally:
            for one in hooks:
                one.remove()
