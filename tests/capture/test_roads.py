"""This file tests the second and third road on families that would take the first, traps of T5 included."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BigBirdConfig, BigBirdModel, GPT2Config, GPT2Model

from attnstore.capture.captor import Captor
from attnstore.capture.facts import KindFacts, ModelFacts
from attnstore.capture.interface import Interface
from attnstore.capture.model import load
from attnstore.capture.modules import Modules
from attnstore.capture.outputs import Outputs
from attnstore.capture.probe import probe_inputs
from attnstore.capture.roads import on_road
from attnstore.capture.stacks import kind_of
from attnstore.errors import NotCaptured

Tiny = Callable[[str], Path]
Maps = dict[tuple[str, int], NDArray[np.float32]]


def maps_of(captor: Captor, inputs: dict[str, Tensor]) -> Maps:
    found: Maps = {}
    captor.run(inputs, lambda kind, layer, weights: found.update({(kind, layer): weights}))
    return found


def text_inputs(captor: Captor, batch: int) -> dict[str, Tensor]:
    inputs = {"input_ids": torch.arange(batch * 7).reshape(batch, 7) * 5 % 90 + 5}
    if "cross" in captor.facts.kinds:
        inputs["decoder_input_ids"] = torch.arange(batch * 7).reshape(batch, 7) * 3 % 90 + 5
    return inputs


# One example: T5's position bias, item 1 of what its modules return, then has the shape of a map.
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("road", [Outputs, Modules])
@pytest.mark.parametrize("family", ["t5", "bart", "gpt2", "llama", "albert", "roberta"])
def test_other_roads_give_the_maps_of_the_first(tiny: Tiny, family: str, road: Any, batch: int) -> None:
    first = load(str(tiny(family)))
    assert first.facts.capture == "interface"
    inputs = text_inputs(first, batch)
    expected = maps_of(first, inputs)
    other = on_road(road, first.model, first.facts, first.encoder, probe_inputs(first.model, first.facts))
    assert other.facts.capture == road.name
    found = maps_of(other, inputs)
    assert list(found) == list(expected)
    for place, weights in expected.items():
        np.testing.assert_allclose(found[place], weights, atol=1e-6, err_msg=str(place))


def test_roads_that_do_not_fit_say_so(tiny: Tiny) -> None:
    deberta = load(str(tiny("deberta"))).model
    with pytest.raises(NotCaptured, match="computes its attention itself"):
        Interface(deberta, {})
    with pytest.raises(NotCaptured, match="its classes declare none"):
        Outputs(deberta, {})


def facts_of(model: nn.Module, kind: str, causal: bool) -> ModelFacts:
    kinds = {kind: KindFacts(2, 4, 4, "source", "source", causal)}
    return ModelFacts("m", "", {}, type(model).__name__, "", kinds, None, "", "float32", "one")


def test_declarations_by_list_and_by_layer_name_are_honoured() -> None:
    # BigBird declares a list of two attention classes under one name and filters its cross-attention by name.
    config = BigBirdConfig(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        attention_type="original_full",
        is_decoder=True,
        add_cross_attention=True,
    )
    model = BigBirdModel._from_config(config, attn_implementation="eager")
    facts = facts_of(model, "decoder", True)
    captor = on_road(Outputs, model, facts, None, probe_inputs(model, facts))
    assert list(maps_of(captor, text_inputs(captor, 2))) == [("decoder", 0), ("decoder", 1)]


def test_attention_computed_in_another_order_than_eager_is_still_within_tolerance() -> None:
    # With this option GPT-2's own eager attention is a method of its own, which the interface does not reach.
    config = GPT2Config(
        vocab_size=100, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0, reorder_and_upcast_attn=True
    )
    model = GPT2Model._from_config(config, attn_implementation="eager")
    facts = facts_of(model, "decoder", True)
    captor = on_road(Interface, model, facts, None, probe_inputs(model, facts))
    assert len(maps_of(captor, text_inputs(captor, 2))) == 2


@pytest.mark.parametrize(
    ("path", "alone", "kind"),
    [
        ("encoder.layer.0.attention.self", "encoder", "encoder"),
        # A BERT used as a decoder keeps its layers in an "encoder".
        ("encoder.layer.0.attention.self", "decoder", "decoder"),
        ("encoder.layer.0.crossattention.self", "decoder", "cross"),
        ("decoder.bert.encoder.layer.0.attention.self", None, "decoder"),
        ("decoder.bert.encoder.layer.0.crossattention.self", None, "cross"),
        ("encoder.layers.0.self_attn", None, "encoder"),
        ("decoder.layers.0.self_attn", None, "decoder"),
        ("decoder.layers.0.encoder_attn", None, "cross"),
        ("encoder.block.0.layer.0.SelfAttention", None, "encoder"),
        ("decoder.block.0.layer.1.EncDecAttention", None, "cross"),
        ("h.0.attn", "decoder", "decoder"),
        ("h.0.crossattention", "decoder", "cross"),
    ],
)
def test_the_kind_is_read_from_the_path(path: str, alone: str | None, kind: str) -> None:
    assert kind_of(path, alone) == kind
