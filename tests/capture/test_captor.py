"""This file tests one captured forward pass: what is kept alive, what comes through, what is refused."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from attnstore.capture.captor import Captor
from attnstore.capture.facts import KindFacts, ModelFacts
from attnstore.capture.handover import Handover
from attnstore.capture.interface import Interface
from attnstore.capture.model import load
from attnstore.capture.modules import Modules
from attnstore.capture.outputs import Outputs
from attnstore.capture.probe import probe_inputs
from attnstore.capture.roads import ROADS, on_road
from attnstore.errors import BadInput, NotCaptured

Tiny = Callable[[str], Path]
LAYERS = 6
SHAPE = (3, 4, 11, 11)


def deep_bert(road: Any, seed: int = 0) -> Captor:
    """A BERT of six layers on a chosen road."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=64
    )
    model = BertModel._from_config(config, attn_implementation="eager").eval()
    kinds = {"encoder": KindFacts(LAYERS, 4, 4, "source", "source", False)}
    facts = ModelFacts("deep", "", {}, "BertModel", "bert", kinds, 512, "", "float32", "one")
    return on_road(road, model, facts, None, probe_inputs(model, facts))


def ids(batch: int = SHAPE[0], tokens: int = SHAPE[2]) -> dict[str, Tensor]:
    return {"input_ids": torch.arange(batch * tokens).reshape(batch, tokens) % 50}


def live_maps() -> int:
    """How many different tensors of a map's size exist now; views of one storage count once."""
    size = int(np.prod(SHAPE))
    found = {
        one.untyped_storage().data_ptr() for one in gc.get_objects() if type(one) is Tensor and one.numel() == size
    }
    return len(found)


@pytest.mark.parametrize("road", ROADS)
def test_no_more_than_two_layers_are_alive_at_once(road: Any) -> None:
    captor, inputs = deep_bert(road), ids()
    alive, handed = [], list[weakref.ref[NDArray[np.float32]]]()

    def receive(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        handed.append(weakref.ref(weights))
        alive.append((live_maps(), sum(one() is not None for one in handed)))

    captor.run(inputs, receive)
    assert len(alive) == LAYERS
    # At least the map in hand is counted, so the count does see maps.
    assert all(1 <= tensors <= 2 and arrays <= 2 for tensors, arrays in alive), alive
    gc.collect()
    assert live_maps() == 0


def test_the_library_keeps_every_layer_alive_so_the_count_can_fail() -> None:
    captor = deep_bert(Outputs)
    with torch.inference_mode():
        output = captor.model(**ids(), output_attentions=True)
    assert live_maps() == LAYERS == len(output.attentions)


def hooks(model: nn.Module) -> int:
    """Hooks of ours: transformers installs its own once and leaves them."""
    return sum(
        "attnstore" in hook.__module__ for module in model.modules() for hook in module._forward_hooks.values()
    ) + sum("attnstore_taker" in module.__dict__ for module in model.modules())


class Stop(Exception):
    pass


@pytest.mark.parametrize("road", ROADS)
def test_what_the_receiver_raises_comes_through_and_nothing_of_ours_stays_behind(road: Any) -> None:
    captor, reached = deep_bert(road), []

    def refuse(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        reached.append((layer, hooks(captor.model)))
        if layer == 2:
            raise Stop

    with pytest.raises(Stop):
        captor.run(ids(), refuse)
    assert [layer for layer, _ in reached] == [0, 1, 2]
    assert reached[0][1] > 0, "while it runs there is something to remove"
    assert hooks(captor.model) == 0
    # And the model can be run again, from layer 0.
    layers: list[int] = []
    captor.run(ids(), lambda kind, layer, weights: layers.append(layer))
    assert layers == list(range(LAYERS))


@pytest.mark.parametrize("road", ROADS)
def test_the_three_roads_give_the_same_maps(road: Any) -> None:
    expected, found = list[NDArray[np.float32]](), list[NDArray[np.float32]]()
    deep_bert(Interface).run(ids(), lambda kind, layer, weights: expected.append(weights))
    deep_bert(road).run(ids(), lambda kind, layer, weights: found.append(weights))
    assert len(found) == LAYERS
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


def test_two_captors_in_one_process_do_not_mix() -> None:
    first, second = deep_bert(Interface, seed=1), deep_bert(Interface, seed=2)
    alone = list[NDArray[np.float32]]()
    second.run(ids(), lambda kind, layer, weights: alone.append(weights))
    inside = list[NDArray[np.float32]]()

    def nested(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        if layer == 1:
            second.run(ids(), lambda kind, layer, weights: inside.append(weights))

    first.run(ids(), nested)
    assert len(inside) == LAYERS
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(inside, alone, strict=True))


def test_maps_are_those_without_dropout_whatever_the_model_was_left_in() -> None:
    model = BertModel._from_config(
        BertConfig(
            vocab_size=50, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=4, intermediate_size=64
        ),
        attn_implementation="eager",
    )
    model.train()
    kinds = {"encoder": KindFacts(LAYERS, 4, 4, "source", "source", False)}
    facts = ModelFacts("deep", "", {}, "BertModel", "bert", kinds, 512, "", "float32", "one")
    captor = on_road(Interface, model, facts, None, probe_inputs(model, facts))
    runs: list[list[NDArray[np.float32]]] = [[], []]
    for run in runs:
        captor.run(ids(), lambda kind, layer, weights, run=run: run.append(weights))
    assert all(np.array_equal(one, other) for one, other in zip(*runs, strict=True))
    assert np.allclose(runs[0][-1].sum(axis=-1), 1.0, atol=1e-5)


def test_weights_belong_to_the_receiver() -> None:
    captor = deep_bert(Interface)
    clean, scribbled = list[NDArray[np.float32]](), list[NDArray[np.float32]]()
    captor.run(ids(), lambda kind, layer, weights: clean.append(weights.copy()))

    def scribble(kind: str, layer: int, weights: NDArray[np.float32]) -> None:
        scribbled.append(weights.copy())
        weights[:] = -1.0

    captor.run(ids(), scribble)
    assert all(np.array_equal(one, other) for one, other in zip(clean, scribbled, strict=True))


def test_stacks_take_turns_and_layers_count_within_a_kind(tiny: Tiny) -> None:
    captor = load(str(tiny("bart")))
    inputs = {"input_ids": torch.full((1, 5), 9), "decoder_input_ids": torch.full((1, 3), 9)}
    order: list[tuple[str, int, tuple[int, ...]]] = []
    captor.run(inputs, lambda kind, layer, weights: order.append((kind, layer, weights.shape)))
    # Two encoder layers, then three decoder layers, each followed by its cross-attention [target, source].
    assert order[:2] == [("encoder", 0, (1, 4, 5, 5)), ("encoder", 1, (1, 4, 5, 5))]
    assert order[2:4] == [("decoder", 0, (1, 4, 3, 3)), ("cross", 0, (1, 4, 3, 5))]
    assert [(kind, layer) for kind, layer, _ in order[4:]] == [
        ("decoder", 1),
        ("cross", 1),
        ("decoder", 2),
        ("cross", 2),
    ]


def test_grouped_queries_give_a_map_for_every_query_head(tiny: Tiny) -> None:
    maps: list[NDArray[np.float32]] = []
    load(str(tiny("llama"))).run(ids(1, 6), lambda kind, layer, weights: maps.append(weights))
    assert maps[0].shape == (1, 4, 6, 6)
    # Heads 0 and 1 share their keys but not their queries.
    assert np.abs(maps[0][0, 0] - maps[0][0, 1]).max() > 1e-3


def test_a_decoder_without_a_target_is_refused(tiny: Tiny) -> None:
    with pytest.raises(NotCaptured, match="no target tokens"):
        load(str(tiny("t5"))).run(ids(), lambda kind, layer, weights: None)


def test_an_input_that_the_model_does_not_take_is_refused() -> None:
    with pytest.raises(BadInput, match="inputs that it does not take: wrong_name"):
        deep_bert(Interface).run({**ids(), "wrong_name": torch.zeros(1)}, lambda kind, layer, weights: None)


def test_gpt2_is_not_fed_token_types_although_it_would_take_them(tiny: Tiny) -> None:
    captor = load(str(tiny("gpt2")))
    runs: list[list[NDArray[np.float32]]] = [[], [], []]
    zeros = torch.zeros(SHAPE[0], SHAPE[2], dtype=torch.long)
    captor.run(ids(), lambda kind, layer, weights: runs[0].append(weights))
    captor.run({**ids(), "token_type_ids": zeros}, lambda kind, layer, weights: runs[1].append(weights))
    assert np.array_equal(runs[0][-1], runs[1][-1])
    # Fed by hand, they change the maps: word 0 is added to every token.
    with torch.inference_mode():
        captor.model.set_attn_implementation("eager")
        fed = captor.model(**ids(), token_type_ids=zeros, output_attentions=True).attentions[-1].numpy()
    assert np.abs(fed - runs[0][-1]).max() > 1e-3


FACTS = {"encoder": KindFacts(2, 4, 4, "source", "source", False)}


def test_a_map_of_another_shape_is_refused() -> None:
    hand = Handover("m", {"encoder": (1, 4, 5, 5)}, FACTS, lambda kind, layer, weights: None)
    hand.take("encoder", torch.zeros(1, 4, 5, 5))
    with pytest.raises(NotCaptured, match=r"encoder map of layer 1 has shape \[1, 4, 5, 7\]"):
        hand.take("encoder", torch.zeros(1, 4, 5, 7))
    with pytest.raises(NotCaptured, match="a map of kind 'cross'"):
        hand.take("cross", torch.zeros(1, 4, 5, 5))


@pytest.mark.parametrize("layers", [0, 1])
def test_too_few_layers_are_refused(layers: int) -> None:
    hand = Handover("m", {"encoder": (1, 4, 5, 5)}, FACTS, lambda kind, layer, weights: None)
    for _ in range(layers):
        hand.take("encoder", torch.zeros(1, 4, 5, 5))
    with pytest.raises(NotCaptured, match=f"maps came from {layers} encoder layers; expected 2 encoder layers"):
        hand.finish()


def test_a_forward_pass_ends_with_the_last_map() -> None:
    captor = deep_bert(Interface)
    ended: list[str] = []
    for name, module in captor.model.named_modules():
        if name.endswith("output.dense"):
            module.register_forward_hook(lambda module, args, output, name=name: ended.append(name))
    found: list[NDArray[np.float32]] = []
    captor.run(ids(), lambda kind, layer, weights: found.append(weights))
    assert len(found) == LAYERS
    assert f"encoder.layer.{LAYERS - 2}.output.dense" in ended
    assert not any(name.startswith(f"encoder.layer.{LAYERS - 1}.") for name in ended)


@pytest.mark.gpu
def test_maps_leave_the_device(tiny: Tiny) -> None:
    maps: dict[str, list[NDArray[np.float32]]] = {"cpu": [], "cuda": []}
    for device, found in maps.items():
        captor = load(str(tiny("bert")), device=device)
        captor.run(ids(), lambda kind, layer, weights, found=found: found.append(weights))
    for one, other in zip(*maps.values(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_modules_road_leaves_the_librarys_output_without_maps() -> None:
    # What the model itself collects are the empty maps that were put in their place.
    captor = deep_bert(Modules)
    seen: list[Any] = []
    captor.model.register_forward_hook(lambda module, args, output: seen.append(output))
    one_more = {"encoder": replace(captor.facts.kinds["encoder"], layers=LAYERS + 1)}  # so that it runs to its end
    shape = (SHAPE[0], one_more["encoder"].heads, SHAPE[2], SHAPE[2])
    hand = Handover("m", {"encoder": shape}, one_more, lambda kind, layer, weights: None)
    Modules(captor.model, {module: "encoder" for module in captor.model.modules()}).forward(ids(), hand)
    assert [one.numel() for one in seen[0].attentions] == [0] * LAYERS
