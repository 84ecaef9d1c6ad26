"""This file tests the weights of heads against those of modules by name, and their rows against full matrices."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import attnstore
from attnstore.capture.evidence.weights import Matrices, gain, matrices
from attnstore.capture.instrument import Instrument
from attnstore.capture.model import load
from attnstore.job.recipe import Recipe
from attnstore.job.run import ingest

Tiny = Callable[[str], Path]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def plain(folder: Path) -> Any:
    return transformers.AutoModel.from_pretrained(folder)


def split(weight: Any, heads: int, group: int = 1) -> Floats:
    """[head, input, item] of the weight [output, input] of an nn.Linear whose heads follow one another."""
    own = weight.detach().double().numpy().T
    return np.repeat(np.stack(np.split(own, heads // group, axis=1)), group, axis=0)


def out(weight: Any, heads: int) -> Floats:
    """[head, item, hidden] of the weight [hidden, input] of an nn.Linear."""
    return np.stack(np.split(weight.detach().double().numpy().T, heads))


def by_name(family: str, model: Any) -> dict[tuple[str, int], tuple[Floats, ...]]:
    """W_Q, W_K, W_V, W_O of each layer of a model with 4 heads, from the modules that its class names."""
    found: dict[tuple[str, int], tuple[Floats, ...]] = {}
    if family == "bert":
        for layer, block in enumerate(model.encoder.layer):
            own = block.attention.self
            found["encoder", layer] = (
                *(split(one.weight, 4) for one in (own.query, own.key, own.value)),
                out(block.attention.output.dense.weight, 4),
            )
    if family == "albert":
        own = model.encoder.albert_layer_groups[0].albert_layers[0].attention
        for layer in range(3):
            found["encoder", layer] = (
                *(split(one.weight, 4) for one in (own.query, own.key, own.value)),
                out(own.dense.weight, 4),
            )
    if family == "gpt2":
        for layer, block in enumerate(model.h):
            # Conv1D keeps weights [input, output]; queries, keys and values lie one after another.
            query, key, value = np.split(block.attn.c_attn.weight.detach().double().numpy(), 3, axis=1)
            found["decoder", layer] = (
                *(np.stack(np.split(one, 4, axis=1)) for one in (query, key, value)),
                np.stack(np.split(block.attn.c_proj.weight.detach().double().numpy(), 4)),
            )
    if family == "llama":
        for layer, block in enumerate(model.layers):
            own = block.self_attn  # two heads share keys and values
            shared = (split(one.weight, 4, 2) for one in (own.k_proj, own.v_proj))
            found["decoder", layer] = (split(own.q_proj.weight, 4), *shared, out(own.o_proj.weight, 4))
    if family == "vit":
        for layer, block in enumerate(model.layers):
            own = block.attention
            found["encoder", layer] = (
                *(split(one.weight, 4) for one in (own.q_proj, own.k_proj, own.v_proj)),
                out(own.o_proj.weight, 4),
            )
    if family == "t5":
        for kind, stack, place in (("encoder", "encoder", 0), ("decoder", "decoder", 0), ("cross", "decoder", 1)):
            for layer, block in enumerate(getattr(model, stack).block):
                own = block.layer[place].SelfAttention if place == 0 else block.layer[1].EncDecAttention
                found[kind, layer] = (
                    *(split(one.weight, 4) for one in (own.q, own.k, own.v)),
                    out(own.o.weight, 4),
                )
    return found


@pytest.mark.parametrize("family", ["bert", "albert", "gpt2", "llama", "vit", "t5"])
def test_the_matrices_of_heads_are_the_weights_of_the_modules_of_those_names(tiny: Tiny, family: str) -> None:
    folder = tiny(family)
    expected = by_name(family, plain(folder))
    circuits = Instrument(load(str(folder))).circuits
    assert sorted(expected) == sorted((one.kind, one.layer) for one in circuits)
    for circuit in circuits:
        found: Matrices = matrices(circuit)
        for name, one, other in zip(
            ("query", "key", "value", "output"), found[:4], expected[circuit.kind, circuit.layer], strict=True
        ):
            np.testing.assert_array_equal(one, other, err_msg=f"{circuit.kind} {circuit.layer} {name}")


@pytest.mark.parametrize("width", [2, 8, 9])
def test_the_gain_of_a_norm_is_its_weight_whatever_its_bias(width: int) -> None:
    like = torch.zeros(1, width, 1)
    rms, layer = nn.RMSNorm(width, eps=1e-6), nn.LayerNorm(width)
    for norm in (rms, layer):
        nn.init.normal_(norm.weight)
    nn.init.normal_(layer.bias)
    for norm in (rms, layer):
        np.testing.assert_allclose(gain(norm, like), norm.weight.detach().numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gain(nn.LayerNorm(width, elementwise_affine=False), like), 1, rtol=1e-5)


def test_the_gain_of_a_norm_that_keeps_it_less_one_is_found() -> None:
    from transformers.models.gemma.modeling_gemma import GemmaRMSNorm

    norm = GemmaRMSNorm(8)
    nn.init.normal_(norm.weight)
    np.testing.assert_allclose(gain(norm, torch.zeros(1, 8, 1)), 1 + norm.weight.detach().numpy(), rtol=1e-5, atol=1e-6)


def kept(folder: Path, place: Path, **text: str) -> attnstore.Store:
    """A store of one short text with the numbers of the model's weights."""
    (place / "texts.jsonl").write_text(json.dumps({"text": "the cat sat", **text}) + "\n", encoding="utf-8")
    corpus = {"kind": "jsonl", "path": str(place / "texts.jsonl")}
    value = {"corpus": corpus, "model": {"name": str(folder)}, "keep": {"evidence": ["weights"]}}
    return ingest(Recipe.build(value), place / "s.attn")


@pytest.mark.parametrize(
    ("family", "kinds", "norms", "bends"),
    [
        ("bert", {"encoder"}, None, {"q": True, "k": True, "v": True}),
        ("gpt2", {"decoder"}, lambda model: [block.ln_1.weight for block in model.h], dict.fromkeys("qkv", False)),
        (
            "llama",
            {"decoder"},
            lambda model: [block.input_layernorm.weight for block in model.layers],
            {"q": True, "k": True, "v": False},  # positions turn queries and keys, and leave values alone
        ),
    ],
)
def test_the_rows_of_a_model_are_those_of_its_matrices_at_full_size(
    tiny: Tiny, tmp_path: Path, family: str, kinds: set[str], norms: Any, bends: dict[str, bool]
) -> None:
    model = plain(tiny(family))
    if norms:  # gains of one would not show whether they are multiplied in
        with torch.no_grad():
            for norm in norms(model):
                norm.uniform_(0.3, 2)
        folder = tmp_path / "model"
        model.save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(tiny(family)).save_pretrained(folder)
    else:
        folder = tiny(family)
    named = by_name(family, model)
    gains = [norm.detach().double().numpy() for norm in norms(model)] if norms else [np.ones(32)] * 2
    with kept(folder, tmp_path) as store:
        heads = store.sql("from head_weights order by layer, head").to_arrow().to_pylist()
        assert {row["kind"] for row in heads} == kinds
        assert len(heads) == 8
        for row in heads:
            query, key, value, output = (one[row["head"]] for one in named[row["kind"], row["layer"]])
            moved = value @ output
            assert row["qk_norm"] == pytest.approx(np.linalg.norm(query @ key.T))
            assert row["ov_spectral"] == pytest.approx(np.linalg.norm(moved, 2))
            values = np.linalg.eigvals(moved)
            assert row["copying"] == pytest.approx(values.real.sum() / np.abs(values).sum(), abs=1e-9)
            assert row["ov_trace"] == pytest.approx(np.trace(moved))
            every = named[row["kind"], row["layer"]][3]
            share = np.linalg.norm(output) / sum(np.linalg.norm(one) for one in every)
            assert row["w_output_share"] == pytest.approx(share)
            assert row["qk_bilinear"] is (family != "llama")
            assert row["kv_head"] == (row["head"] // 2 if family == "llama" else row["head"])
        pairs = store.sql("from compositions").to_arrow().to_pylist()
        assert len(pairs) == 3 * 4 * 4
        for row in pairs:
            assert (row["layer_a"], row["layer_b"]) == (0, 1)
            _, _, value_a, output_a = (one[row["head_a"]] for one in named[row["kind"], 0])
            query, key, value, output = (one[row["head_b"]] for one in named[row["kind"], 1])
            before, later = np.diag(gains[0]), np.diag(gains[1])
            wrote = before @ value_a @ output_a
            asks = later @ query @ key.T @ later
            reader = {"q": asks, "k": asks.T, "v": later @ value @ output}[row["relation"]]
            size = np.linalg.norm(wrote @ reader) / np.linalg.norm(wrote) / np.linalg.norm(reader)
            assert row["score"] == pytest.approx(size, rel=1e-4)  # gains are tried out in float32
            assert row["random"] == pytest.approx(32**-0.5)
            assert row["approximate"] is bends[row["relation"]]
            assert row["folded"] is bool(norms)
        (angles,) = store.sql(
            "select cosine_smallest, overlap from head_overlaps where layer = 1 and head_a = 0 and head_b = 3"
        ).to_arrow().to_pylist()  # fmt: skip
        from scipy.linalg import subspace_angles

        output = named[next(iter(kinds)), 1][3]
        cosines = np.cos(subspace_angles(output[0].T, output[3].T))
        assert angles == pytest.approx({"cosine_smallest": cosines.max(), "overlap": (cosines**2).mean()})


def test_layers_that_share_their_weights_have_equal_rows(tiny: Tiny, tmp_path: Path) -> None:
    with kept(tiny("albert"), tmp_path) as store:
        heads = store.sql("select * exclude (layer) from head_weights order by layer, head").to_arrow().to_pylist()
        assert heads[:4] == heads[4:8] == heads[8:]
        assert {row["param_group"] for row in heads} == {0}
        pairs = store.sql(
            "select * exclude (layer_a, layer_b), layer_a, layer_b from compositions"
            " order by layer_a, layer_b, relation, head_a, head_b"
        ).to_arrow().to_pylist()  # fmt: skip
        assert [(row.pop("layer_a"), row.pop("layer_b")) for row in pairs[::48]] == [(0, 1), (0, 2), (1, 2)]
        scores = [row["score"] for row in pairs]
        assert scores[:48] == scores[48:96] == scores[96:]
        assert len(set(scores)) == 48


def test_a_model_of_three_kinds_composes_within_the_encoder_and_within_the_decoder(tiny: Tiny, tmp_path: Path) -> None:
    with kept(tiny("t5"), tmp_path, target="a dog") as store:
        found = store.sql("select kind, count(*) as n from compositions group by kind order by kind").to_arrow()
        assert found.to_pylist() == [{"kind": "decoder", "n": 48}, {"kind": "encoder", "n": 48}]
        cross = store.sql("from head_weights where kind = 'cross'").to_arrow().to_pylist()
        assert len(cross) == 8
        for row in cross:  # what it reads and what it writes to are two streams
            assert row["ov_trace"] is None
            assert row["copying"] is None
            assert row["ov_norm"] > 0
        assert len(store.ask("weights/heads", kind="cross")) == 8
        assert len(store.ask("weights/composition", kind="cross")) == 0
