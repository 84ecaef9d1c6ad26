"""On which road the maps of each family of transformers are taken: a tiny random model of every one that can be built.

`python bench/architectures.py [FAMILY ...]`
"""

import resource
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import CONFIG_MAPPING, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from attnstore.capture.classes import auto_class, outline, reads
from attnstore.capture.model import _facts
from attnstore.capture.quiet import quiet
from attnstore.capture.roads import choose
from attnstore.errors import AttnStoreError

SIZES = {
    32: "hidden_size d_model n_embd dim embed_dim embedding_size emb_dim word_embed_proj_dim d_embed",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers num_encoder_layers"
    " num_decoder_layers num_key_value_heads num_kv_heads num_local_experts num_experts n_routed_experts"
    " num_experts_per_tok moe_topk",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads attention_heads"
    " rotary_dim patch_size",
    8: "head_dim d_kv d_head attention_head_size qk_nope_head_dim qk_rope_head_dim v_head_dim kv_lora_rank q_lora_rank",
    64: "intermediate_size ffn_dim d_ff encoder_ffn_dim decoder_ffn_dim hidden_dim d_inner n_inner ffn_hidden_size"
    " moe_intermediate_size shared_expert_intermediate_size pooler_hidden_size",
    80: "max_position_embeddings n_positions max_seq_len n_ctx",
    16: "image_size",
    400: "vocab_size",
}
"""Sizes of a tiny model, by the names that configurations give them."""

EXTRA: dict[str, dict[str, Any]] = {
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "layoutlmv3": {"coordinate_size": 5, "shape_size": 6},
    "luke": {"entity_vocab_size": 10},
    "esm": {"pad_token_id": 1, "mask_token_id": 4},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 10]},
}
"""What single families want besides."""

REFUSALS = {
    "no model can be built": "refused: these sizes do not fit it",
    "building ": "refused: its code needs another package",
    " reads: it reads ": "refused: it reads neither texts nor images",
    "a number of attention layers and heads": "refused: no attention, or no such numbers in its configuration",
    "differs from layer to layer": "refused: heads differ from layer to layer",
    "fails on a small input": "refused: a text or an image alone is no input for it",
    "it returns none of kind": "refused: it returns no maps",
    "sliding window around": "refused: its maps are bands",
    "none of the 3 roads": "refused: maps of another shape, or not to be had",
}
"""What a refusal says, and what that comes to."""

MOST_PARAMETERS = 20_000_000
SECONDS = 60
BYTES = 8 * 2**30
"""Address space of this process: one family with large maps must not end the run."""


class NotBuilt(Exception):
    """A configuration that these sizes do not fit."""


def tiny(family: str) -> PreTrainedConfig:
    """The configuration of a family with small sizes in place of its own; raises NotBuilt where they do not fit."""
    try:
        with quiet():
            return small(CONFIG_MAPPING[family]())
    except Exception as error:
        raise NotBuilt(first_line(error)) from error


def small(default: PreTrainedConfig) -> PreTrainedConfig:
    """A configuration like this one with small sizes, and so those within it."""
    kind = type(default)
    sizes: dict[str, Any] = {}
    for name, size in ((name, size) for size, names in SIZES.items() for name in names.split()):
        if type(getattr(default, name, None)) is int and not isinstance(getattr(kind, name, None), property):
            sizes[name] = size
    if getattr(default, "vocab_size", 0) is None:
        sizes["vocab_size"] = 400
    if isinstance(getattr(default, "image_size", None), list | tuple):
        sizes["image_size"] = [16, 16]
    if "qk_rope_head_dim" in sizes:  # there the size of a head is that of its rotated part
        sizes.pop("head_dim", None)
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    if getattr(default, "layer_types", None):  # one layer in four attends, where they are mixed
        sizes["num_hidden_layers"] = 4
    rope = getattr(default, "rope_parameters", None)
    if isinstance(rope, dict) and "mrope_section" in rope:
        sizes["rope_parameters"] = {**rope, "mrope_section": [2, 1, 1]}
    ids = [name for name in vars(default) if name.endswith(("_token_id", "_token_index"))]
    sizes |= {name: 1 for name in ids if (getattr(default, name) or 0) not in range(400)}
    for name in getattr(kind, "sub_configs", ()):
        inner = getattr(default, name, None)
        if isinstance(inner, PreTrainedConfig):
            sizes[name] = small(inner)
    return kind(**sizes | EXTRA.get(default.model_type, {}))


def road(family: str) -> str:
    """Where a tiny model of a family ends: the name of a road, or the error with which it is refused."""
    config = tiny(family)
    meta = outline(family, config)
    parameters = sum(parameter.numel() for parameter in meta.parameters())
    if parameters > MOST_PARAMETERS:
        raise NotBuilt(f"{parameters / 1e6:.0f} million parameters")
    takes = reads(meta)
    torch.manual_seed(0)
    try:
        with quiet():
            model = auto_class(config).from_config(config, attn_implementation="eager")
    except Exception as error:  # such as first weights that are scaled by a size of 0
        raise NotBuilt(first_line(error)) from error
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, 0.1)
    captor = choose(model, _facts(family, config, model, {}), None)
    return f"{captor.facts.capture} ({takes})"


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises NotBuilt inside after so many seconds."""

    def stop(*_: object) -> None:
        raise NotBuilt(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def first_line(error: Exception) -> str:
    """What an error says, on one line of bearable length."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def main() -> None:
    """Print a row for each family, and how many there are of each end."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    ends: Counter[str] = Counter()
    for family in sys.argv[1:] or sorted(MODEL_MAPPING_NAMES):
        try:
            with at_most(SECONDS):
                end = said = road(family)
        except NotBuilt as error:
            end, said = "not built", f"not built: {error}"
        except AttnStoreError as error:
            text = first_line(error)
            end = next((end for mark, end in REFUSALS.items() if mark in text), "refused: another reason")
            said = f"refused: {text}"
        except Exception as error:  # what should not happen is what this looks for
            end, said = "an error without a type of ours", f"ERROR {first_line(error)}"
        ends[end] += 1
        print(f"{family:<28} {said}", flush=True)
    print()
    for end, count in ends.most_common():
        print(f"{count:>4}  {end}")


if __name__ == "__main__":
    main()
