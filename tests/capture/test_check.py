"""This file tests that the start-up check lets true maps pass and refuses every kind of wrong one."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AttentionMaskInterface

from attnstore.capture.captor import Captor
from attnstore.capture.check import check, compare
from attnstore.capture.encode import collate
from attnstore.capture.handover import Handover
from attnstore.capture.interface import NAME
from attnstore.capture.model import load
from attnstore.capture.roads import choose
from attnstore.errors import NotCaptured

Tiny = Callable[[str], Path]
Change = Callable[[Tensor], Tensor]
TEXTS = ("the cat sat on a mat", "a dog")


class Spoiled:
    """A road that changes every map on its way."""

    name = "spoiled"

    def __init__(self, road: Any, change: Change) -> None:
        self._road, self._change = road, change

    def forward(self, inputs: Mapping[str, Any], hand: Handover) -> None:
        outer, change = hand, self._change

        class Between:
            shapes = outer.shapes

            def take(self, kind: str, weights: Tensor) -> None:
                outer.take(kind, change(weights))

        self._road.forward(inputs, Between())


def spoiled(captor: Captor, change: Change) -> Captor:
    return Captor(captor.model, captor.facts, captor.encoder, Spoiled(captor._road, change))


def sample(captor: Captor) -> list[Any]:
    return [(captor.encoder.encode(text), None) for text in TEXTS]


def shifted(weights: Tensor) -> Tensor:
    """Rows that still sum to 1, each moved by one key: wrong, and no rule but the comparison can tell."""
    return weights.roll(1, dims=-1)


def not_finite(weights: Tensor) -> Tensor:
    spoilt = weights.clone()
    spoilt[0, 0, 0, 0] = float("nan")
    return spoilt


def nudged(amount: float) -> Change:
    def nudge(weights: Tensor) -> Tensor:
        spoilt = weights.clone()
        spoilt[0, 0, 0, 0] += amount
        spoilt[0, 0, 0, 1] -= amount
        return spoilt

    return nudge


def negative(weights: Tensor) -> Tensor:
    spoilt = weights.clone()
    spoilt[0, 0, 0, 0] = -0.5
    return spoilt


def test_true_maps_pass_with_the_largest_difference(tiny: Tiny) -> None:
    captor = load(str(tiny("bert")))
    assert 0.0 <= check(captor, sample(captor)) <= 1e-6
    nearly = check(spoiled(captor, nudged(4e-7)), sample(captor))
    assert 2e-7 < nearly <= 1e-6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (nudged(1e-5), "differ from the library's own by up to 1e-05"),
        (lambda weights: weights.transpose(-1, -2).contiguous(), "sum to between"),
        (lambda weights: weights.flip(1), "differ from the library's own"),
        (lambda weights: weights * 0.9, "sum to between 0.9 and 0.9"),
        (lambda weights: weights.softmax(-1), "puts weight on padding"),
        (not_finite, "not finite"),
        (negative, "negative weights"),
    ],
)
def test_wrong_maps_are_refused_in_words(tiny: Tiny, change: Change, words: str) -> None:
    captor = load(str(tiny("bert")))
    with pytest.raises(NotCaptured, match=words):
        check(spoiled(captor, change), sample(captor))


def test_rows_that_still_sum_to_one_but_belong_to_other_keys_are_refused(tiny: Tiny) -> None:
    captor = load(str(tiny("bert")))
    inputs = collate([captor.encoder.encode(TEXTS[0])], None, 0)
    inputs["attention_mask"][:] = 1
    with pytest.raises(NotCaptured):
        compare(spoiled(captor, shifted), inputs)


def test_a_lost_causal_mask_is_refused(tiny: Tiny) -> None:
    captor = load(str(tiny("gpt2")))
    with pytest.raises(NotCaptured, match="decoder layer 0 looks ahead"):
        check(spoiled(captor, lambda weights: torch.full_like(weights, 1 / 6)), [sample(captor)[0]] * 2)


def test_the_trap_of_an_attention_function_without_its_mask_function_is_caught(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    captor = load(str(tiny("gpt2")))
    assert captor.facts.capture == "interface"
    # What happens where only the attention function is registered: the library drops the mask without a word.
    monkeypatch.delitem(AttentionMaskInterface._global_mapping, NAME)
    with pytest.raises(NotCaptured, match=r"puts weight on padding|looks ahead"):
        check(captor, sample(captor))


def test_rows_below_one_pass_only_where_the_family_declares_it(tiny: Tiny) -> None:
    captor = load(str(tiny("gpt_oss")))
    assert check(captor, sample(captor)) <= 1e-6
    undeclared = Captor(captor.model, replace(captor.facts, row_sums="one"), captor.encoder, captor._road)
    with pytest.raises(NotCaptured, match="sum to between"):
        check(undeclared, sample(captor))


def test_at_most_two_examples_and_64_tokens_are_run_one_of_them_padded(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    captor = load(str(tiny("bert")))
    seen: list[Mapping[str, Tensor]] = []
    run = Captor.run

    def watched(self: Captor, inputs: Mapping[str, Tensor], receive: Any) -> None:
        seen.append(inputs)
        run(self, inputs, receive)

    monkeypatch.setattr(Captor, "run", watched)
    long = captor.encoder.encode("the cat sat on a mat " * 12)
    assert len(long) == 74
    for examples in (1, 2, 5):
        check(captor, [(long, None)] * examples)
        assert seen[-1]["input_ids"].shape == (2, 64)
        assert seen[-1]["attention_mask"].sum(dim=1).tolist() == [64, 48]
    check(captor, sample(captor))
    # Padded already: [CLS] a dog [SEP] beside eight tokens.
    assert seen[-1]["attention_mask"].sum(dim=1).tolist() == [8, 4]


def test_checking_changes_neither_the_inputs_nor_the_model(tiny: Tiny) -> None:
    captor = load(str(tiny("bert")))
    inputs = collate([captor.encoder.encode(text) for text in (TEXTS[0], TEXTS[0])], None, 0)
    before = {name: value.clone() for name, value in inputs.items()}
    compare(captor, inputs)
    assert all(torch.equal(inputs[name], value) for name, value in before.items())
    assert captor.model.config._attn_implementation == NAME
    assert not captor.model.training


def test_both_sides_of_a_model_with_two_stacks_are_checked(tiny: Tiny) -> None:
    captor = load(str(tiny("t5")))
    encoder = captor.encoder
    pairs = [(encoder.encode(text), encoder.encode_target(text)) for text in TEXTS]
    assert check(captor, pairs) <= 1e-6

    def only_cross(weights: Tensor) -> Tensor:
        return weights.flip(1) if weights.shape[-1] != weights.shape[-2] else weights

    pairs = [(source, encoder.encode_target("the river ran down")) for source, _ in pairs]
    with pytest.raises(NotCaptured, match="differ from the library's own"):
        check(spoiled(captor, only_cross), pairs)


def test_a_model_that_no_road_fits_is_refused_with_what_was_tried(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    captor = load(str(tiny("bert")))
    attention = type(captor.model.encoder.layer[0].attention.self)
    monkeypatch.setattr("attnstore.capture.modules.is_attention", lambda module: False)
    monkeypatch.setattr("attnstore.capture.outputs._declared", lambda model: iter(()))
    forward = attention.forward

    def by_itself(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Computes its attention eagerly whatever the implementation is called.
        name, self.config._attn_implementation = self.config._attn_implementation, "eager"
        try:
            return forward(self, *args, **kwargs)
        finally:
            self.config._attn_implementation = name

    monkeypatch.setattr(attention, "forward", by_itself)
    with pytest.raises(NotCaptured) as caught:
        choose(captor.model, captor.facts, captor.encoder)
    for road in ("interface", "outputs", "modules"):
        assert f"{road}: " in caught.value.found
    assert "maps came from 0 encoder layers; expected 2 encoder layers" in caught.value.found
    assert "another family" in caught.value.remedy


def test_a_declaration_that_the_librarys_maps_contradict_is_refused(tiny: Tiny) -> None:
    captor = load(str(tiny("gpt2")))
    kinds = {"encoder": replace(captor.facts.kinds["decoder"], causal=False)}
    with pytest.raises(NotCaptured, match="never look ahead; expected bidirectional"):
        choose(captor.model, replace(captor.facts, kinds=kinds), captor.encoder)
    bert = load(str(tiny("bert")))
    kinds = {"decoder": replace(bert.facts.kinds["encoder"], causal=True)}
    with pytest.raises(NotCaptured, match="look ahead; expected causal"):
        choose(bert.model, replace(bert.facts, kinds=kinds), bert.encoder)


def test_padding_is_judged_by_each_examples_own_mask(tiny: Tiny) -> None:
    captor = load(str(tiny("bert")))
    inputs = collate([captor.encoder.encode(text) for text in TEXTS], None, 0)
    lied = {**inputs, "attention_mask": torch.ones_like(inputs["attention_mask"])}
    maps: list[Any] = []
    captor.run(lied, lambda kind, layer, weights: maps.append(weights))
    assert np.abs(maps[0][1, :, :4, 4:]).max() > 1e-3, "without a mask there is weight on padding"
    captor.run(inputs, lambda kind, layer, weights: maps.append(weights))
    assert np.abs(maps[2][1, :, :4, 4:]).max() == 0.0
