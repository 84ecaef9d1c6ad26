"""This file makes the small input on which the roads of a model are tried."""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from attnstore.capture.facts import ModelFacts

_TOKENS, _TARGET_TOKENS, _PADDED = 8, 6, 3


def probe_inputs(model: PreTrainedModel, facts: ModelFacts) -> dict[str, Tensor]:
    """Two examples of arbitrary tokens (8, and 6 for a decoder), the second with 3 of padding; or two images.

    Nothing is random: a model is taken on the same road every time.
    """
    config = model.config
    if facts.takes == "pixels":
        size = getattr(config, "image_size", 224)
        height, width = size if isinstance(size, list | tuple) else (size, size)
        shape = (2, getattr(config, "num_channels", 3), height, width)
        return {"pixel_values": torch.arange(torch.Size(shape).numel(), dtype=torch.float32).sin().reshape(shape)}
    inner = config.get_text_config()
    ids = _ids(
        min(_TOKENS, facts.max_length or _TOKENS),
        getattr(inner, "vocab_size", 64),
        getattr(inner, "pad_token_id", None),
    )
    inputs = {"input_ids": ids, "attention_mask": _mask(ids)}
    if len(facts.kinds) > 1:
        target = ids[:, :_TARGET_TOKENS].flip(0)
        inputs |= {"decoder_input_ids": target, "decoder_attention_mask": _mask(target)}
    return inputs


def _ids(tokens: int, vocabulary: int, pad: int | None) -> Tensor:
    # The last quarter of a vocabulary seldom holds special tokens, which some models treat apart.
    first = vocabulary * 3 // 4
    ids = first + (torch.arange(2 * tokens).reshape(2, tokens) * 7) % max(1, vocabulary - first)
    return ids if pad is None else torch.where(ids == pad, max(0, first - 1), ids)


def _mask(ids: Tensor) -> Tensor:
    mask = torch.ones_like(ids)
    if ids.shape[1] > _PADDED:
        mask[1, -_PADDED:] = 0
    return mask
