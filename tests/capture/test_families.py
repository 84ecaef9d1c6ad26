"""This file tests that the maps of every supported family are the library's own, on the road that it should take."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoModelForTextEncoding

from attnstore.capture.captor import Captor
from attnstore.capture.check import compare
from attnstore.capture.encode import collate
from attnstore.capture.model import describe, load
from attnstore.errors import BadInput, NotCaptured

Tiny = Callable[[str], Path]
Maps = dict[str, list[NDArray[np.float32]]]

LONG = "the cat sat on a mat, and the dog barked at night"
SHORT = "a river ran down"
ENCODER, DECODER = {"encoder": (2, 4, 4, False)}, {"decoder": (2, 4, 4, True)}
# Family: road, and layers, heads, key-value heads and causal of each kind.
EXPECTED: dict[str, tuple[str, dict[str, tuple[int, int, int, bool]]]] = {
    "bert": ("interface", ENCODER),
    "bert_decoder": ("interface", DECODER),
    "albert": ("interface", {"encoder": (3, 4, 4, False)}),
    "roberta": ("interface", ENCODER),
    "distilbert": ("interface", ENCODER),
    "electra": ("interface", ENCODER),
    "gpt2": ("interface", DECODER),
    "llama": ("interface", {"decoder": (2, 4, 2, True)}),
    "gpt_oss": ("interface", {"decoder": (2, 4, 2, True)}),
    "t5": ("interface", {"encoder": (2, 4, 4, False), "decoder": (2, 4, 4, True), "cross": (2, 4, 4, False)}),
    "t5_encoder": ("interface", ENCODER),
    "bart": ("interface", {"encoder": (2, 4, 4, False), "decoder": (3, 4, 4, True), "cross": (3, 4, 4, False)}),
    "mbart": ("interface", {"encoder": (2, 4, 4, False), "decoder": (3, 4, 4, True), "cross": (3, 4, 4, False)}),
    "vit": ("interface", ENCODER),
    "xglm": ("outputs", DECODER),
    "deberta": ("modules", ENCODER),
    "deberta_v2": ("modules", ENCODER),
    "mpnet": ("modules", ENCODER),
    "xlnet": ("modules", ENCODER),
    "bloom": ("modules", DECODER),
    "openai_gpt": ("modules", DECODER),
    "falcon": ("modules", {"decoder": (2, 4, 1, True)}),  # one key and value for all heads
    "gptj": ("modules", DECODER),
    "convbert": ("outputs", ENCODER),
    "modernbert": ("interface", ENCODER),
}
TWO_STACKS = ("t5", "bart", "mbart")


def inputs_of(captor: Captor, family: str) -> dict[str, torch.Tensor]:
    if family == "vit":
        return {"pixel_values": torch.randn((2, 3, 16, 16), generator=torch.Generator().manual_seed(1))}
    encoder = captor.encoder
    targets = [encoder.encode_target(text) for text in (SHORT, LONG)] if family in TWO_STACKS else None
    return collate([encoder.encode(LONG), encoder.encode(SHORT)], targets, encoder.pad_id)


def captured(captor: Captor, inputs: dict[str, torch.Tensor]) -> Maps:
    found: Maps = {kind: [] for kind in captor.facts.kinds}

    def receive(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        assert layer == len(found[kind])
        assert weights.dtype == np.float32
        assert weights.flags.c_contiguous
        found[kind].append(weights)

    captor.run(inputs, receive)
    return found


def librarys_own(folder: Path, family: str, inputs: dict[str, torch.Tensor]) -> Maps:
    """From a second instance of the model that capture never touched."""
    auto: Any = AutoModelForTextEncoding if family == "t5_encoder" else AutoModel
    model = auto.from_pretrained(folder, attn_implementation="eager").eval()
    if family in (
        "gpt2",
        "llama",
        "gpt_oss",
        "distilbert",
        "bloom",
        "mpnet",
        "xglm",
        "openai_gpt",
        "falcon",
        "gptj",
        "modernbert",
        *TWO_STACKS,
    ) or (family == "t5_encoder"):
        inputs = {name: value for name, value in inputs.items() if name != "token_type_ids"}
    with torch.inference_mode():
        output = model(**inputs, output_attentions=True)
    if family in TWO_STACKS:
        names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    else:
        names = {next(iter(EXPECTED[family][1])): "attentions"}
    return {kind: [one.numpy() for one in output[name]] for kind, name in names.items()}


@pytest.mark.parametrize("family", EXPECTED)
def test_maps_equal_those_of_an_untouched_instance_with_a_padded_row(tiny: Tiny, family: str) -> None:
    road, kinds = EXPECTED[family]
    captor = load(str(tiny(family)))
    assert captor.facts.capture == road
    assert {
        kind: (facts.layers, facts.heads, facts.kv_heads, facts.causal) for kind, facts in captor.facts.kinds.items()
    } == kinds
    inputs = inputs_of(captor, family)
    if family != "vit":
        assert inputs["attention_mask"].sum(dim=1).unique().numel() == 2, "one row must be padded"
    ours, own = captured(captor, inputs), librarys_own(tiny(family), family, inputs)
    for kind, (layers, heads, _, _) in kinds.items():
        assert len(ours[kind]) == len(own[kind]) == layers
        for mine, theirs in zip(ours[kind], own[kind], strict=True):
            assert mine.shape == theirs.shape
            assert mine.shape[1] == heads
            np.testing.assert_allclose(mine, theirs, atol=1e-6, rtol=0)
            assert mine.std(axis=-1).max() > 0.01, "a uniform map would hide mistakes"
    assert compare(captor, inputs) <= 1e-6


@pytest.mark.parametrize("family", EXPECTED)
def test_a_description_says_what_loading_finds(tiny: Tiny, family: str) -> None:
    described, loaded = describe(str(tiny(family))), load(str(tiny(family))).facts
    assert described.capture == ""
    for name in ("name", "revision", "class_name", "model_type", "kinds", "max_length", "dtype", "row_sums", "takes"):
        assert getattr(described, name) == getattr(loaded, name), name


def test_sides_say_which_tokens_lie_along_an_axis(tiny: Tiny) -> None:
    kinds = describe(str(tiny("bart"))).kinds
    assert {kind: (facts.queries, facts.keys) for kind, facts in kinds.items()} == {
        "encoder": ("source", "source"),
        "decoder": ("target", "target"),
        "cross": ("target", "source"),
    }
    assert describe(str(tiny("gpt2"))).kinds["decoder"].queries == "source"


def test_layers_that_share_parameters_are_grouped(tiny: Tiny) -> None:
    # ALBERT has one group by default: three layers, one set of parameters.
    assert describe(str(tiny("albert"))).kinds["encoder"].groups == (0, 0, 0)
    assert describe(str(tiny("bert"))).kinds["encoder"].groups == ()


@pytest.mark.parametrize(
    ("family", "length"),
    # RoBERTa's and MPNet's tables begin after the padding index 1: 80 - 2. ViT: 4 x 4 patches and [CLS].
    [
        ("bert", 80),
        ("roberta", 78),
        ("mpnet", 78),
        ("bart", 80),
        ("gpt2", 80),
        ("vit", 17),
        ("t5", None),
        ("xlnet", None),
        ("bloom", None),
    ],
)
def test_the_longest_input_counts_only_positions_that_a_token_can_have(
    tiny: Tiny, family: str, length: int | None
) -> None:
    assert describe(str(tiny(family))).max_length == length


def test_the_longest_roberta_input_runs_and_one_token_more_does_not(tiny: Tiny) -> None:
    captor = load(str(tiny("roberta")))
    assert captor.facts.max_length == 78
    for length in (78, 79):
        inputs = {"input_ids": torch.full((1, length), 9), "attention_mask": torch.ones(1, length, dtype=torch.long)}
        if length == 78:
            assert captured(captor, inputs)["encoder"][0].shape == (1, 4, 78, 78)
        else:
            with pytest.raises(BadInput, match="an input of 79 tokens; expected at most 78"):
                captured(captor, inputs)


def test_sinks_are_a_declared_exception_to_row_sums(tiny: Tiny) -> None:
    captor = load(str(tiny("gpt_oss")))
    assert captor.facts.row_sums.startswith("at most one")
    sums = captured(captor, inputs_of(captor, "gpt_oss"))["decoder"][0][0].sum(axis=-1)
    assert sums.max() < 1.0 + 1e-6
    assert sums.min() < 0.9
    assert load(str(tiny("llama"))).facts.row_sums == "one"


@pytest.mark.parametrize("call", [describe, load])
def test_banded_maps_are_refused_in_words(tiny: Tiny, call: Callable[[str], object]) -> None:
    with pytest.raises(NotCaptured, match="sliding window") as caught:
        call(str(tiny("longformer")))
    assert "full attention" in caught.value.remedy


def test_heads_that_differ_between_layers_are_refused_in_words(tiny: Tiny) -> None:
    with pytest.raises(NotCaptured, match="num_attention_heads differs from layer to layer"):
        describe(str(tiny("segformer")))


def test_a_model_of_sound_is_refused_in_words(tiny: Tiny) -> None:
    with pytest.raises(NotCaptured, match="input_values"):
        describe(str(tiny("wav2vec")))


def test_padding_does_not_change_the_maps_of_an_example(tiny: Tiny) -> None:
    for family in ("bert", "roberta", "gpt2", "bloom", "xlnet"):
        captor = load(str(tiny(family)))
        encoder = captor.encoder
        both = captured(captor, collate([encoder.encode(LONG), encoder.encode(SHORT)], None, encoder.pad_id))
        alone = captured(captor, collate([encoder.encode(SHORT)], None, encoder.pad_id))
        tokens = len(encoder.encode(SHORT))
        for padded, single in zip(*both.values(), *alone.values(), strict=True):
            np.testing.assert_allclose(padded[1, :, :tokens, :tokens], single[0], atol=1e-6)
