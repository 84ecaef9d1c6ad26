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

    def forward(self, inputs: Mapping[str, Any], hand: Handover) -> Any:
        """One forward pass whose maps go to `hand`; what the model returns."""

        def take(module: nn.Module, _args: Any, output: Any) -> Any:
            if not isinstance(output, tuple | list):
                return None
            if any(isinstance(one, Tensor) and _is_taken(one) for one in output):
                return None
            kind = self._kinds[module]
            # From the end: a position bias, where there is one, comes before the map.
            for place in range(len(output) - 1, 0, -1):
                found = output[place]
                if not isinstance(found, Tensor) or found.dim() != 4 or not found.is_floating_point():
                    continue
                weights = found.permute(self._axes)
                if tuple(weights.shape) != hand.shapes.get(kind):
                    continue
                hand.take(kind, weights)
                return type(output)((*output[:place], _taken(found), *output[place + 1 :]))
            return None

        # Before the hooks with which transformers itself records outputs, or those would keep every map.
        hooks = [module.register_forward_hook(take, prepend=True) for module in self._kinds if is_attention(module)]
        try:
            return self._model(**inputs, output_attentions=True)
        finally:
            for one in hooks:
                one.remove()


def _taken(weights: Tensor) -> Tensor:
    """An empty map in place of one that was taken: the model collects what its layers return."""
    return weights.new_empty((0, 0, 0, 0))


def _is_taken(output: Tensor) -> bool:
    """Whether an inner module's map was taken already; the outer one must not take something else for it."""
    return output.dim() == 4 and output.numel() == 0
