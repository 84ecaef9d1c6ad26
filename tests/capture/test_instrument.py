"""This file tests passes whose heads are watched or replaced, and passes that begin in the middle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.instrument import Instrument, Watch
from attnstore.capture.model import load
from attnstore.capture.probe import probe_inputs

Tiny = Callable[[str], Path]
FAMILIES = ["bert", "albert", "gpt2", "llama", "bart", "vit", "bloom", "deberta_v2"]


def instrument_of(folder: Path) -> tuple[Instrument, dict[str, Tensor]]:
    captor = load(str(folder))
    return Instrument(captor), probe_inputs(captor.model, captor.facts)


def last(output: Any) -> Tensor:
    found: Tensor = output.last_hidden_state
    return found


class Switch(Watch):
    """Puts something else in the place of one head's output."""

    def __init__(self, kind: str, layer: int, head: int, factor: float) -> None:
        self.where, self.head, self.factor = (kind, layer), head, factor
        self.seen: list[tuple[str, int]] = []

    def heads(self, circuit: Circuit, outputs: Tensor) -> Tensor | None:
        self.seen.append((circuit.kind, circuit.layer))
        if (circuit.kind, circuit.layer) != self.where:
            return None
        changed = outputs.clone()
        changed[:, self.head] *= self.factor
        return changed


@pytest.mark.parametrize("family", FAMILIES)
def test_watching_changes_nothing_and_sees_every_layer_in_order(tiny: Tiny, family: str) -> None:
    instrument, inputs = instrument_of(tiny(family))
    with torch.inference_mode():
        plain = last(instrument.run(inputs))
        watch = Switch("", -1, 0, 0.0)
        watched = last(instrument.run(inputs, watch))
    assert torch.equal(plain, watched)
    assert watch.seen == [(one.kind, one.layer) for one in instrument.circuits]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_replaced_head_takes_effect_and_one_that_stays_does_not(tiny: Tiny, family: str) -> None:
    instrument, inputs = instrument_of(tiny(family))
    kind = instrument.circuits[-1].kind
    with torch.inference_mode():
        plain = last(instrument.run(inputs))
        same = last(instrument.run(inputs, Switch(kind, 0, 1, 1.0)))
        off = last(instrument.run(inputs, Switch(kind, 0, 1, 0.0)))
    assert torch.equal(plain, same)
    assert not torch.allclose(plain, off, atol=1e-3)


def test_a_head_that_is_switched_off_is_one_whose_output_weights_are_zero(tiny: Tiny) -> None:
    instrument, inputs = instrument_of(tiny("bert"))
    with torch.inference_mode():
        off = last(instrument.run(inputs, Switch("encoder", 1, 2, 0.0)))
        output = instrument.circuits[1].output
        assert isinstance(output, torch.nn.Linear)
        output.weight[:, 16:24] = 0
        expected = last(instrument.run(inputs))
    torch.testing.assert_close(off, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_that_begins_in_the_middle_gives_the_same_bits(tiny: Tiny, family: str) -> None:
    instrument, inputs = instrument_of(tiny(family))
    with torch.inference_mode(), instrument.blocks.keep():
        plain = last(instrument.run(inputs))
    assert len(instrument.blocks) > 1
    for start in range(len(instrument.blocks) + 1):
        watch = Switch("", -1, 0, 0.0)
        with torch.inference_mode():
            again = last(instrument.run(inputs, watch, start=start))
        assert torch.equal(plain, again)
        left = [one for at, one in enumerate(instrument.circuits) if instrument.blocks.of(at) >= start]
        expected = [] if start == len(instrument.blocks) else [(one.kind, one.layer) for one in left]
        assert watch.seen == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_replaced_after_the_middle_gives_what_a_whole_pass_gives(tiny: Tiny, family: str) -> None:
    instrument, inputs = instrument_of(tiny(family))
    place = len(instrument.circuits) - 1
    circuit = instrument.circuits[place]
    with torch.inference_mode(), instrument.blocks.keep():
        plain = last(instrument.run(inputs))
    with torch.inference_mode():
        whole = last(instrument.run(inputs, Switch(circuit.kind, circuit.layer, 0, 0.0)))
        start = instrument.blocks.of(place)
        part = last(instrument.run(inputs, Switch(circuit.kind, circuit.layer, 0, 0.0), start=start))
    assert start > 0
    assert torch.equal(whole, part)
    assert not torch.equal(whole, plain)


@pytest.mark.parametrize("family", ["bert", "gpt2", "albert"])
def test_nothing_is_left_behind_not_even_after_an_error(tiny: Tiny, family: str) -> None:
    instrument, inputs = instrument_of(tiny(family))

    def left() -> int:
        hooks = sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in instrument.model.modules())
        return hooks + sum("forward" in vars(one) for one in instrument.model.modules())

    before = left()
    with torch.inference_mode(), instrument.blocks.keep():
        plain = last(instrument.run(inputs, Watch()))
    assert left() == before

    class Broken(Watch):
        def attended(self, circuit: Circuit, output: Tensor) -> None:
            raise RuntimeError("on purpose")

    with torch.inference_mode():
        with pytest.raises(RuntimeError, match="on purpose"):
            instrument.run(inputs, Broken(), start=1)
        assert left() == before
        assert torch.equal(last(instrument.run(inputs)), plain)


@pytest.mark.parametrize("family", ["bert", "deberta_v2"])
def test_padding_does_not_matter_to_what_a_switched_head_does(tiny: Tiny, family: str) -> None:
    instrument, _ = instrument_of(tiny(family))
    ids = torch.arange(7)[None] + 5
    alone = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    padded = {
        "input_ids": torch.cat([torch.nn.functional.pad(ids, (0, 4)), torch.arange(11)[None] + 20]),
        "attention_mask": torch.tensor([[1] * 7 + [0] * 4, [1] * 11]),
    }
    with torch.inference_mode():
        one = last(instrument.run(alone, Switch("encoder", 0, 3, 0.0)))
        other = last(instrument.run(padded, Switch("encoder", 0, 3, 0.0)))
    torch.testing.assert_close(one[0], other[0, :7], rtol=1e-4, atol=1e-4)


def test_gradients_reach_the_heads_of_a_pass(tiny: Tiny) -> None:
    instrument, inputs = instrument_of(tiny("bert"))
    found: list[Tensor] = []

    class Keep(Watch):
        def heads(self, circuit: Circuit, outputs: Tensor) -> Tensor:
            outputs.retain_grad()
            found.append(outputs)
            return outputs  # what comes back is what the model goes on with

    loss: Any = last(instrument.run(inputs, Keep())).square().mean()
    loss.backward()
    for outputs in found:
        assert outputs.grad is not None
        assert outputs.grad.abs().max() > 0
