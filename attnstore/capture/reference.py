"""This file asks transformers for its own attention maps, all layers at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from attnstore.errors import NotCaptured

_NAMES = {
    "encoder": ("encoder_attentions", "attentions"),
    "decoder": ("decoder_attentions", "attentions"),
    "cross": ("cross_attentions",),
}


def library_maps(
    model: PreTrainedModel, inputs: Mapping[str, Any], kinds: Sequence[str]
) -> dict[str, list[NDArray[np.float32]]]:
    """The eager maps of `kinds`, each layer [batch, head, query, key], as `output_attentions=True` returns them.

    The model is switched to its eager attention and back. Raises NotCaptured where it returns none.
    """
    before = model.config._attn_implementation or "eager"
    model.set_attn_implementation("eager")
    try:
        if model.config._attn_implementation != "eager":
            raise NotCaptured(
                f"asking {type(model).__name__} for its own attention maps",
                f"its attention stays {model.config._attn_implementation!r}",
                "the eager one, which alone returns maps",
                'Load it with attn_implementation="eager"',
            )
        with torch.inference_mode():
            output = model(**inputs, output_attentions=True, return_dict=True)
    finally:
        model.set_attn_implementation(before)
    found = {}
    for kind in kinds:
        maps = next((output[name] for name in _NAMES[kind] if output.get(name)), None)
        if maps is None or not all(isinstance(one, Tensor) for one in maps):
            raise NotCaptured(
                f"asking {type(model).__name__} for its own attention maps",
                f"it returns none of kind {kind!r} under output_attentions=True",
                "one map per layer to compare with",
                "Maps that cannot be compared are not stored; use another model of the family",
            )
        found[kind] = [one.detach().to("cpu", torch.float32).numpy() for one in maps]
    return found
