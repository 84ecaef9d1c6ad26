"""This file finds the token with which a model's decoder starts."""

import inspect
import sys
from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel

from attnstore.capture.classes import takes_target
from attnstore.errors import NotCaptured

Start = Callable[[Sequence[int]], int]
"""The id fed to the decoder before these label ids, whose last one is then left out."""


def start_of(model: PreTrainedModel) -> Start | None:
    """How the model shifts its labels right; None for a model without a decoder of its own.

    The model's own function is asked: most begin with one fixed token, mBART with the label's language.
    """
    if not takes_target(model):
        return None

    def start(labels: Sequence[int]) -> int:
        fed = _shifted(model, torch.tensor([list(labels)]))[0].tolist()
        if fed[1:] != list(labels[:-1]):
            raise NotCaptured(
                f"making the decoder input of {type(model).__name__}",
                f"it turns the labels {list(labels)} into {fed}",
                "the labels moved by one",
                "Its tokens could not be aligned with the target text",
            )
        return int(fed[0])

    return start


def _shifted(model: PreTrainedModel, labels: torch.Tensor) -> torch.Tensor:
    config = model.config
    own = getattr(model, "_shift_right", None)
    if own is not None:
        moved: torch.Tensor = own(labels)
        return moved
    shift = getattr(sys.modules[type(model).__module__], "shift_tokens_right", None)
    known = {
        "pad_token_id": config.pad_token_id,
        "decoder_start_token_id": getattr(config, "decoder_start_token_id", None),
    }
    if shift is not None:
        wanted = [name for name in inspect.signature(shift).parameters if name != "input_ids"]
        if all(known.get(name) is not None for name in wanted):
            moved = shift(labels, **{name: known[name] for name in wanted})
            return moved
    raise NotCaptured(
        f"making the decoder input of {type(model).__name__}",
        f"no way to shift labels right with {known}",
        "a shift_tokens_right of its own, and decoder_start_token_id and pad_token_id in its configuration",
        "Add the missing ids to config.json",
    )
