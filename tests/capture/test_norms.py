"""This file tests what heads move against brute force: every vector v_ij of tiny models, one by one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.evidence.frozen import FrozenNorm
from attnstore.capture.evidence.grams import LayerGrams, grams
from attnstore.capture.evidence.mixing import COLUMNS, mixing
from attnstore.capture.evidence.norms import lengths
from attnstore.capture.instrument import Instrument
from attnstore.capture.model import load
from attnstore.capture.probe import probe_inputs
from attnstore.errors import NotCaptured

Tiny = Callable[[str], Path]
Floats = np.ndarray[Any, np.dtype[np.float64]]

FAMILIES = ("bert", "albert", "gpt2", "llama", "vit", "t5", "bart", "deberta_v2", "mpnet", "bloom")
POST_NORM = ("bert", "albert", "bart", "deberta_v2", "mpnet")


@dataclass
class Layer:
    """One layer by brute force, float64: f [batch, head, key, hidden] and v [batch, head, query, key, hidden].

    `stream` and `summed` [batch, query, hidden] of self-attention are the library's own hidden state, and that plus
    what the layer adds.
    """

    circuit: Circuit
    maps: Floats
    f: Floats
    v: Floats
    output: Floats
    stream: Floats | None

    @property
    def together(self) -> Floats:
        """[batch, query, key, hidden]: what all heads take from a key token."""
        return np.asarray(self.v.sum(axis=1))


class Brute:
    """A tiny model, inputs of which one text is padded, and every layer of it."""

    def __init__(self, folder: Path) -> None:
        self.captor = load(str(folder))
        self.instrument = Instrument(self.captor)
        self.inputs = probe_inputs(self.captor.model, self.captor.facts)
        maps: dict[tuple[str, int], Floats] = {}
        taken: dict[tuple[int, bool], list[Tensor]] = {}
        hooks = []
        modules = {one.value.module for one in self.instrument.circuits} | {
            one.output for one in self.instrument.circuits
        }
        for module in modules:

            def keep(module: Any, args: Any, output: Tensor) -> None:
                taken.setdefault((id(module), True), []).append(args[0].double())
                taken.setdefault((id(module), False), []).append(output.double())

            hooks.append(module.register_forward_hook(keep))
        with torch.inference_mode():
            found = self.captor.run_whole(
                self.inputs, lambda kind, layer, weights: maps.__setitem__((kind, layer), weights.astype(np.float64))
            )
            assert found is not None
            for one in hooks:
                one.remove()
            whole = self.captor.model(**self._fed(), output_hidden_states=True)
        states = {
            "encoder": whole.get("encoder_hidden_states", whole.get("hidden_states")),
            "decoder": whole.get("decoder_hidden_states", whole.get("hidden_states")),
        }
        self.states = {kind: [one.numpy() for one in own] for kind, own in states.items() if own is not None}
        self.layers = [
            self._layer(circuit, maps[circuit.kind, circuit.layer], taken, self.states)
            for circuit in self.instrument.circuits
        ]

    def _fed(self) -> dict[str, Any]:
        from attnstore.capture.captor import arguments

        return arguments(self.captor.model, self.inputs)

    def _layer(
        self,
        circuit: Circuit,
        maps: Floats,
        taken: Mapping[tuple[int, bool], list[Tensor]],
        states: Mapping[str, list[Any]],
    ) -> Layer:
        x = taken[id(circuit.value.module), True].pop(0)
        weight, bias = circuit.value.weight.double(), circuit.value.bias.double()
        values = torch.einsum("bti,hio->bhto", x, weight) + bias[:, None]
        f = torch.einsum("bhti,hio->bhto", values, circuit.w_output.double()).numpy()
        v = maps[..., None] * f[:, :, None]
        output = taken[id(circuit.output), False].pop(0).numpy()
        stream = states[circuit.kind][circuit.layer].astype(np.float64) if circuit.is_self else None
        return Layer(circuit, maps, f, v, output, stream)

    def of(self, kind: str) -> list[Layer]:
        return [one for one in self.layers if one.circuit.kind == kind]

    def real(self, kind: str) -> Any:
        """Which queries are no padding [batch, query]; some models set the states of padding to 0."""
        facts = self.captor.facts.kinds[kind]
        mask = self.inputs.get("attention_mask" if facts.queries == "source" else "decoder_attention_mask")
        return np.ones(self.of(kind)[0].output.shape[:2], bool) if mask is None else mask.bool().numpy()


@pytest.fixture(scope="module")
def brute(tiny: Tiny) -> Callable[[str], Brute]:
    return cache(lambda family: Brute(tiny(family)))


def length(vectors: Floats) -> Floats:
    return np.asarray(np.sqrt(np.square(vectors).sum(axis=-1)))


def close(found: Any, expected: Floats, share: float = 1e-5) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=share * max(np.abs(expected).max(), 1e-9))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_all_heads_take_and_the_output_bias_add_up_to_what_the_layer_gives(
    brute: Callable[[str], Brute], family: str
) -> None:
    for layer in brute(family).layers:
        bias = getattr(layer.circuit.output, "bias", None)
        own = 0.0 if bias is None else bias.detach().double().numpy()
        close(layer.together.sum(axis=2) + own, layer.output)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_length_of_what_a_head_takes_is_its_weight_times_the_value_norm(
    brute: Callable[[str], Brute], family: str
) -> None:
    one = brute(family)
    found = lengths(one.instrument, one.inputs)
    for kind in one.captor.facts.kinds:
        for number, layer in enumerate(one.of(kind)):
            close(layer.maps * found.value[kind][number][:, :, None], length(layer.v))
            close(found.output[kind][number], length(layer.v.sum(axis=3)))
            close(found.layer[kind][number], length(layer.together.sum(axis=2)))


@pytest.mark.parametrize("family", FAMILIES)
def test_mixing_is_that_of_every_vector_one_by_one(brute: Callable[[str], Brute], family: str) -> None:
    one = brute(family)
    found = mixing(one.instrument, one.inputs)
    kinds = [kind for kind, facts in one.captor.facts.kinds.items() if facts.queries == facts.keys]
    assert list(found.parts) == sorted(kinds)
    for kind in kinds:
        assert len(found.parts[kind]) == len(one.of(kind))
        real = one.real(kind)
        for measured, layer in zip(found.parts[kind], one.of(kind), strict=True):
            own = dict(zip(COLUMNS, measured[:, real], strict=True))
            together, x = layer.together, layer.stream
            assert x is not None
            token = np.arange(together.shape[1])
            kept = together[:, token, token]
            mixed = (together * (token[:, None] != token)[..., None]).sum(axis=2)
            close(own["self_weight"], layer.maps[:, :, token, token].mean(axis=1)[real])
            close(own["mix_norm"], length(mixed)[real])
            close(own["pres_norm"], length(kept)[real])
            close(own["pres_norm_res"], length(kept + x)[real])
            close(own["x_norm"], length(x)[real])
            close(own["out_norm"], length(layer.output)[real])
            close(own["cosine"], cosine(x[real], layer.output[real]))
            if family not in POST_NORM:
                assert np.isnan(own["mix_norm_ln"]).all()
                assert np.isnan(own["pres_norm_ln"]).all()
                continue
            for column, part in (("mix_norm_ln", mixed), ("pres_norm_ln", kept + x)):
                close(own[column], length(normed(layer, part, x + layer.output))[real])


def cosine(one: Floats, other: Floats) -> Floats:
    return np.asarray((one * other).sum(-1) / length(one) / length(other))


def normed(layer: Layer, part: Floats, whole: Floats) -> Floats:
    """gamma * (part - its mean) / sigma of the whole [batch, query, hidden]."""
    norm = layer.circuit.after
    assert isinstance(norm, torch.nn.LayerNorm)
    sigma = np.sqrt(whole.var(axis=-1, keepdims=True) + norm.eps)
    centred = part - part.mean(axis=-1, keepdims=True)
    return np.asarray(norm.weight.detach().double().numpy() * centred / sigma)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_root_of_a_gram_a_is_the_length_of_what_all_heads_take_together(
    brute: Callable[[str], Brute], family: str
) -> None:
    one = brute(family)
    found = grams(one.instrument, one.inputs)
    for kind in one.captor.facts.kinds:
        for own, layer in zip(found[kind], one.of(kind), strict=True):
            # A root of a number near 0 keeps half of its digits, so that squares are compared.
            close(squares(own.gram, layer.maps), np.square(layer.together).sum(-1))
            if layer.stream is None:
                assert own == LayerGrams(own.gram)
                continue
            check_residual(own, layer, family in POST_NORM)


def check_residual(own: LayerGrams, layer: Layer, has_norm: bool) -> None:
    """With the stream on the diagonal, before and after the norm of the sum."""
    assert layer.stream is not None
    assert own.stream is not None
    assert own.square is not None
    token = np.arange(layer.stream.shape[1])
    vectors = layer.together.copy()
    vectors[:, token, token] += layer.stream
    diagonal = layer.maps[:, :, token, token].transpose(0, 2, 1)  # [batch, token, head]

    def with_stream(gram: Any, stream: Any, square: Any) -> Floats:
        found = squares(gram, layer.maps)
        found[:, token, token] += 2 * (diagonal * stream).sum(-1) + square
        return found

    close(with_stream(own.gram, own.stream, own.square), np.square(vectors).sum(-1))
    if not has_norm:
        assert own.gram_ln is own.stream_ln is own.square_ln is own.scale is None
        return
    assert own.scale is not None
    after = with_stream(own.gram_ln, own.stream_ln, own.square_ln) * np.square(own.scale)[:, :, None]
    whole = (layer.stream + layer.output)[:, :, None]
    close(after, np.square(normed(layer, vectors, whole)).sum(-1))


def squares(gram: Any, maps: Floats) -> Floats:
    """a^T K_j a for every query and key: [batch, query, key] of packed `gram` [batch, key, pair]."""
    heads = maps.shape[1]
    full = np.zeros((*gram.shape[:2], heads, heads))
    row, column = np.triu_indices(heads)
    full[:, :, row, column] = gram
    full[:, :, column, row] = gram
    return np.asarray(np.einsum("bhij,bjhg,bgij->bij", maps, full, maps))


@pytest.mark.parametrize("family", FAMILIES)
def test_states_are_the_librarys_hidden_states(brute: Callable[[str], Brute], family: str) -> None:
    one = brute(family)
    found = mixing(one.instrument, one.inputs).likeness
    for kind, states in one.states.items():
        if kind not in found.length:
            continue
        real = one.real(kind)
        # The library gives the last state of a pre-norm model after one more norm; ours is the stream itself.
        last = len(states) if family in POST_NORM else len(states) - 1
        assert len(found.length[kind]) == len(states)
        for number, state in enumerate(states[:last]):
            close(found.length[kind][number][real], length(state)[real])
            close(found.cosine[kind][number][real], cosine(state[real], states[0][real]), 1e-4)
            for text in range(len(state)):
                first, now = states[0][text, real[text]], state[text, real[text]]
                nearest = cosine(now[:, None], first[None]).argmax(-1)
                assert (found.nearest[kind][number][text, real[text]] == nearest).all()


@pytest.mark.parametrize("family", ["bert", "gpt2", "vit", "bart"])
def test_every_token_is_most_like_itself_at_the_beginning(brute: Callable[[str], Brute], family: str) -> None:
    one = brute(family)
    found = mixing(one.instrument, one.inputs).likeness
    for kind, nearest in found.nearest.items():
        token = np.broadcast_to(np.arange(nearest[0].shape[1]), nearest[0].shape)
        assert (nearest[0] == token)[one.real(kind)].all()
        np.testing.assert_allclose(found.cosine[kind][0], 1, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_padding_changes_nothing_that_is_measured(tiny: Tiny, family: str) -> None:
    captor = load(str(tiny(family)))
    instrument = Instrument(captor)
    short = torch.arange(7)[None] + 5
    alone = {"input_ids": short, "attention_mask": torch.ones_like(short)}
    padded = {
        "input_ids": torch.cat([torch.nn.functional.pad(short, (0, 4), value=0), torch.arange(11)[None] + 20]),
        "attention_mask": torch.tensor([[1] * 7 + [0] * 4, [1] * 11]),
    }
    for kind, layers in mixing(instrument, alone).parts.items():
        for one, other in zip(layers, mixing(instrument, padded).parts[kind], strict=True):
            np.testing.assert_allclose(one[:, 0], other[:, 0, :7], rtol=1e-4, atol=1e-5, equal_nan=True)
    near, far = mixing(instrument, alone).likeness, mixing(instrument, padded).likeness
    for kind, states in near.nearest.items():
        for one_state, other_state in zip(states, far.nearest[kind], strict=True):
            assert (one_state[0] == other_state[0, :7]).all()


def test_a_frozen_norm_adds_up_to_the_norm_of_the_sum() -> None:
    torch.manual_seed(3)
    parts = torch.randn(3, 2, 5, 16)
    for norm in (torch.nn.LayerNorm(16), torch.nn.RMSNorm(16, eps=1e-3)):
        with torch.no_grad():
            for weight in norm.parameters():
                weight.normal_()
        frozen = FrozenNorm(norm, 16, torch.device("cpu"))
        whole = parts.sum(0)
        added = (frozen.direction(parts) * frozen.scale(whole)[..., None]).sum(0)
        bias = getattr(norm, "bias", None)
        torch.testing.assert_close(added + (0 if bias is None else bias), norm(whole), rtol=1e-4, atol=1e-5)


def test_a_norm_that_does_more_is_refused() -> None:
    class Odd(torch.nn.LayerNorm):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's own name
            return super().forward(input).tanh()

    frozen = FrozenNorm(Odd(16), 16, torch.device("cpu"))
    with pytest.raises(NotCaptured, match="Odd"):
        frozen.scale(torch.randn(1, 3, 16))
