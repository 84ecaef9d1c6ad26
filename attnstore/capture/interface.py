"""This file is the first road: an attention function that transformers calls in place of its own."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from attnstore.capture.handover import Handover
from attnstore.errors import NotCaptured

NAME = "attnstore"
_TAKER = "attnstore_taker"


class Interface:
    """Maps from the attention function that the model's own file calls eager, so that nothing is computed anew."""

    name = "interface"

    def __init__(self, model: PreTrainedModel, kinds: Mapping[nn.Module, str]) -> None:
        self._model, self._kinds = model, kinds
        # Both, or the causal mask is silently left out: the mask function is looked up under the same name.
        AttentionInterface.register(NAME, _attend)
        AttentionMaskInterface.register(NAME, eager_mask)
        model.set_attn_implementation(NAME)
        if model.config._attn_implementation != NAME:
            raise NotCaptured(
                f"routing the attention of {type(model).__name__} through transformers' interface",
                "the model computes its attention itself",
                "a model that calls transformers' attention interface",
            )

    def forward(self, inputs: Mapping[str, Any], hand: Handover) -> Any:
        """One forward pass whose maps go to `hand`; what the model returns."""

        def take(module: nn.Module, weights: Tensor) -> None:
            hand.take(self._kinds[module], weights)

        for module in self._kinds:
            module.__dict__[_TAKER] = take
        try:
            return self._model(**inputs)
        finally:
            for module in self._kinds:
                module.__dict__.pop(_TAKER, None)


def _attend(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
    """What the model's own eager function gives, with None in place of the map."""
    output, weights = _eager(module)(module, *args, **kwargs)
    take = module.__dict__.get(_TAKER)
    if take is not None:
        take(module, weights)
    return output, None


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    for defining in type(module).__mro__:
        found = getattr(sys.modules.get(defining.__module__), "eager_attention_forward", None)
        if found is not None:
            eager: Callable[..., tuple[Tensor, Tensor]] = found
            return eager
    raise NotCaptured(
        f"taking the attention of {type(module).__name__}",
        "its file has no eager_attention_forward",
        "the function that returns the weights",
    )
