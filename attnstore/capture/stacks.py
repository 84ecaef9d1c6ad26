"""This file reads from a model's configuration and structure which attention kinds it has and how large they are."""

from typing import Any

from torch import nn
from transformers import PreTrainedConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from attnstore.capture.facts import KindFacts
from attnstore.capture.families import family_of
from attnstore.errors import BadInput, NotCaptured

_WITHOUT_MAPS = ("linear_attention", "mamba", "conv", "moe", "recurrent")
"""Types of layers, in models that mix them, that compute no attention map."""
_POSITION_TABLES = ("position_embeddings", "position_embedding", "embed_positions", "wpe")


def is_attention(module: nn.Module) -> bool:
    """Whether a module is named as one that attends: the only trait that all families share."""
    name = type(module).__name__.lower()
    return "attention" in name or "attn" in name


def kind_of(path: str, alone: str | None) -> str:
    """The attention kind of the module at `path`; `alone` is the kind of a model with one stack, None if it has two.

    The first of "encoder" and "decoder" in the path decides: a BERT used as a decoder keeps an "encoder" further in.
    """
    steps = path.lower().split(".")
    if any("cross" in step or "encdec" in step or "encoder_attn" in step for step in steps):
        return "cross"
    if alone is not None:
        return alone
    return "decoder" if "decoder" in [step for step in steps if step in ("encoder", "decoder")][:1] else "encoder"


def declared_causal(model: nn.Module, config: PreTrainedConfig) -> bool:
    """Whether the self-attention of a model with one stack is causal, as its family, modules or tasks declare."""
    declared = family_of(config.model_type).causal
    if declared is not None:
        return declared
    marks = [
        module.is_causal
        for path, module in model.named_modules()
        if is_attention(module)
        and isinstance(getattr(module, "is_causal", None), bool)
        and kind_of(path, None) != "cross"
    ]
    if marks:
        return any(marks)
    # Older families say nothing in their modules.
    name = config.model_type
    return name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and name not in MODEL_FOR_MASKED_LM_MAPPING_NAMES


def kinds_of(config: PreTrainedConfig, *, two_stacks: bool, causal: bool) -> dict[str, KindFacts]:
    """The attention kinds that a configuration gives, by name, in the order in which a forward pass reaches them.

    `causal` is that of a model with one stack; a second stack always is. Raises NotCaptured where layers differ in
    heads, BadInput where a number is below 1.
    """
    if two_stacks:
        encoder, decoder = getattr(config, "encoder", config), getattr(config, "decoder", config)
        ends = _layers(encoder, "encoder_layers"), _layers(decoder, "decoder_layers", "num_decoder_layers")
        first = _heads(encoder, "encoder_attention_heads")
        second = _heads(decoder, "decoder_attention_heads")
        return {
            "encoder": KindFacts(ends[0], *first, queries="source", keys="source", causal=False),
            "decoder": KindFacts(ends[1], *second, queries="target", keys="target", causal=True),
            "cross": KindFacts(ends[1], *second, queries="target", keys="source", causal=False),
        }
    inner = config.get_text_config()
    groups = family_of(inner.model_type).groups(inner)
    facts = KindFacts(_layers(inner), *_heads(inner), queries="source", keys="source", causal=causal, groups=groups)
    return {"decoder" if causal else "encoder": facts}


def max_length_of(model: nn.Module, config: PreTrainedConfig) -> int | None:
    """Positions that the model can take, special tokens included; None where nothing bounds them.

    Tables of positions may keep rows that no token can have: RoBERTa's begin after the padding index, BART's after 2.
    """
    limits = [getattr(config.get_text_config(), "max_position_embeddings", None)]
    for path, module in model.named_modules():
        if path.rsplit(".", 1)[-1] in _POSITION_TABLES and isinstance(module, nn.Embedding):
            unused = getattr(module, "offset", 0) + (0 if module.padding_idx is None else module.padding_idx + 1)
            limits.append(module.num_embeddings - unused)
    for path, parameter in model.named_parameters():
        # Vision models keep one learned row per patch and special token: [1, token, hidden].
        if path.rsplit(".", 1)[-1] in _POSITION_TABLES and parameter.dim() == 3:
            limits.append(parameter.shape[1])
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known) if known else None


def _layers(config: Any, *names: str) -> int:
    special = family_of(config.model_type).layers
    if special is not None:
        return special(config)
    kinds = getattr(config, "layer_types", None)
    if kinds and not names:
        return sum(kind not in _WITHOUT_MAPS for kind in kinds)
    return _number(config, *names, "num_hidden_layers", "num_layers")


def _heads(config: Any, *names: str) -> tuple[int, int]:
    special = family_of(config.model_type).heads
    heads = special(config) if special is not None else _number(config, *names, "num_attention_heads")
    if getattr(config, "multi_query", False):
        return heads, 1
    try:
        shared = getattr(config, "num_key_value_heads", None)
    # A configuration whose layers share differently refuses to name one number.
    except Exception:
        return heads, heads
    return heads, shared if isinstance(shared, int) else heads


def _number(config: Any, *names: str) -> int:
    doing = f"reading the configuration of a {config.model_type!r} model"
    for name in names:
        try:
            found = getattr(config, name, None)
        except Exception as error:
            raise _differs(doing, f"{name}: {error}") from error
        if isinstance(found, list | tuple) and found:
            if any(one != found[0] for one in found):
                raise _differs(doing, f"{name} differs from layer to layer: {list(found)}")
            found = found[0]
        if isinstance(found, int) and not isinstance(found, bool):
            if found < 1:
                raise BadInput(doing, f"{name} = {found}", "1 or more", "Correct config.json")
            return found
    raise NotCaptured(
        doing,
        f"none of {', '.join(names)} is there",
        "a number of attention layers and heads",
        "Use a transformer model; if it is one, declare it in attnstore/capture/families",
    )


def _differs(doing: str, found: str) -> NotCaptured:
    return NotCaptured(
        doing,
        found,
        "the same number of heads in every layer",
        "A store holds arrays [layer, head, cell], so such a model cannot be kept in one",
    )
