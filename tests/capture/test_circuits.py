"""This file tests that a head's projections are found by what they do: the same modules and columns that names say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnstore.capture.circuits import Circuit, find_circuits, weight_of
from attnstore.capture.instrument import Instrument, Watch
from attnstore.capture.model import load
from attnstore.capture.probe import probe_inputs
from attnstore.errors import NotCaptured

Tiny = Callable[[str], Path]
HEADS, ITEMS = 4, 8


def circuits_of(folder: Path) -> tuple[Any, tuple[Circuit, ...]]:
    captor = load(str(folder))
    return captor.model, find_circuits(captor)


def side_by_side(first: int = 0, heads: int = HEADS) -> Tensor:
    """Columns [head, item] of heads that lie one after another from `first`."""
    return first + torch.arange(heads * ITEMS).reshape(heads, ITEMS)


def test_separate_projections_are_those_that_bert_names(tiny: Tiny) -> None:
    model, circuits = circuits_of(tiny("bert"))
    assert [(one.kind, one.layer) for one in circuits] == [("encoder", 0), ("encoder", 1)]
    for number, one in enumerate(circuits):
        block: Any = model.encoder.layer[number].attention
        assert one.value.module is block.self.value
        assert one.query is not None
        assert one.query.module is block.self.query
        assert one.key is not None
        assert one.key.module is block.self.key
        assert one.output is block.output.dense
        assert one.after is block.output.LayerNorm
        assert one.before is None
        for projection in (one.value, one.query, one.key):
            assert torch.equal(projection.columns, side_by_side())
        assert one.is_bilinear
        assert one.is_self
        assert one.heads == HEADS
        # W_V of a head are rows of the module's weight, W_O columns of the output's.
        assert torch.equal(one.value.weight[1], weight_of(block.self.value)[:, 8:16])
        assert torch.equal(one.value.bias[1], dict(block.self.named_parameters())["value.bias"][8:16])
        assert torch.equal(one.w_output[1], weight_of(block.output.dense)[8:16])


def test_a_fused_projection_is_cut_into_thirds_in_gpt2(tiny: Tiny) -> None:
    model, circuits = circuits_of(tiny("gpt2"))
    for number, one in enumerate(circuits):
        block: Any = model.h[number]
        assert one.value.module is block.attn.c_attn
        assert one.output is block.attn.c_proj
        assert one.query is not None
        assert one.key is not None
        assert torch.equal(one.query.columns, side_by_side())
        assert torch.equal(one.key.columns, side_by_side(32))
        assert torch.equal(one.value.columns, side_by_side(64))
        assert one.before is block.ln_1
        assert one.after is None
        assert one.is_bilinear
        # A Conv1D keeps its weight [input, output], the other way round than a Linear.
        assert weight_of(block.attn.c_attn).shape == (32, 96)
        assert torch.equal(one.value.weight[2], weight_of(block.attn.c_attn)[:, 80:88])
        assert torch.equal(one.w_output[2], weight_of(block.attn.c_proj)[16:24])


def test_interleaved_projections_are_told_apart_in_bloom(tiny: Tiny) -> None:
    model, circuits = circuits_of(tiny("bloom"))
    per_head = torch.arange(3 * HEADS * ITEMS).reshape(HEADS, 3, ITEMS)
    for number, one in enumerate(circuits):
        block: Any = model.h[number]
        assert one.value.module is block.self_attention.query_key_value
        assert one.output is block.self_attention.dense
        assert one.query is not None
        assert one.key is not None
        for at, projection in enumerate((one.query, one.key, one.value)):
            assert torch.equal(projection.columns, per_head[:, at])
        assert one.before is block.input_layernorm
        assert not one.is_bilinear, "ALiBi adds a bias of positions to the scores"


def test_heads_of_a_group_share_a_projection_in_llama(tiny: Tiny) -> None:
    model, circuits = circuits_of(tiny("llama"))
    shared = side_by_side(heads=2)[torch.tensor([0, 0, 1, 1])]
    for number, one in enumerate(circuits):
        block: Any = model.layers[number]
        assert one.value.module is block.self_attn.v_proj
        assert one.output is block.self_attn.o_proj
        assert one.query is not None
        assert one.query.module is block.self_attn.q_proj
        assert one.key is not None
        assert one.key.module is block.self_attn.k_proj
        assert torch.equal(one.query.columns, side_by_side())
        assert torch.equal(one.value.columns, shared)
        assert torch.equal(one.key.columns, shared)
        assert one.before is block.input_layernorm
        assert not one.is_bilinear, "queries and keys are rotated"


def test_layers_that_share_parameters_have_circuits_of_their_own_in_albert(tiny: Tiny) -> None:
    _, circuits = circuits_of(tiny("albert"))
    assert [one.layer for one in circuits] == [0, 1, 2]
    assert len({id(one.value.module) for one in circuits}) == 1


def test_cross_attention_takes_values_from_the_encoder_in_bart(tiny: Tiny) -> None:
    model, circuits = circuits_of(tiny("bart"))
    kinds = [one.kind for one in circuits]
    assert kinds == ["encoder"] * 2 + ["decoder", "cross"] * 3
    for one in circuits:
        if one.kind == "cross":
            block = model.decoder.layers[one.layer].encoder_attn
            assert one.value.module is block.v_proj
            assert one.output is block.out_proj
            assert not one.is_self
            assert one.before is one.after is None


def test_a_model_whose_values_come_from_no_module_is_refused(tiny: Tiny) -> None:
    captor = load(str(tiny("xlnet")))
    with pytest.raises(NotCaptured, match=r"keep\.evidence"):
        find_circuits(captor)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bloom", "t5", "vit", "deberta_v2", "mpnet"])
def test_maps_times_values_are_the_heads_outputs(tiny: Tiny, family: str) -> None:
    captor = load(str(tiny(family)))
    instrument = Instrument(captor)
    taken: list[Tensor] = []
    given: list[Tensor] = []
    maps: dict[tuple[str, int], Tensor] = {}

    class Keep(Watch):
        def values(self, circuit: Circuit, values: Tensor) -> None:
            taken.append(values)

        def heads(self, circuit: Circuit, outputs: Tensor) -> None:
            given.append(outputs)

    def receive(kind: str, layer: int, weights: object) -> None:
        maps[kind, layer] = torch.as_tensor(weights)

    with torch.inference_mode():
        instrument.run(probe_inputs(captor.model, captor.facts), Keep(), receive=receive)
    assert len(taken) == len(given) == len(instrument.circuits)
    for one, v, z in zip(instrument.circuits, taken, given, strict=True):
        torch.testing.assert_close(maps[one.kind, one.layer] @ v, z, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "deberta_v2"])
def test_a_pruned_head_has_the_columns_that_it_had_before(tiny: Tiny, family: str) -> None:
    captor = load(str(tiny(family)))
    whole = find_circuits(captor)
    first = whole[0].value
    own = first.columns[1]
    weight: Any = first.module.weight
    with torch.no_grad():
        (weight if isinstance(first.module, torch.nn.Linear) else weight.T)[own] = 0
        if first.module.bias is not None:
            first.module.bias[own] = 0  # type: ignore[index]
    assert not first.weight[1].any()
    for one, before in zip(find_circuits(captor), whole, strict=True):
        assert one.value.module is before.value.module
        assert torch.equal(one.value.columns, before.value.columns)
        assert (one.output, one.before, one.after, one.adds) == (
            before.output,
            before.before,
            before.after,
            before.adds,
        )
        assert one.is_bilinear == before.is_bilinear
        for now, then in ((one.query, before.query), (one.key, before.key)):
            assert (now is None) == (then is None)
            assert now is None or then is None or torch.equal(now.columns, then.columns)
        assert (one.value.offset is None) == (before.value.offset is None)


def test_a_layer_of_pruned_heads_is_found_too(tiny: Tiny) -> None:
    captor = load(str(tiny("bert")))
    model: Any = captor.model
    value = model.encoder.layer[1].attention.self.value
    with torch.no_grad():
        value.weight.zero_()
        value.bias.zero_()
    circuits = find_circuits(captor)
    assert circuits[1].value.module is value
    assert torch.equal(circuits[1].value.columns, side_by_side())
