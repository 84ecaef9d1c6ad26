"""Maps come off the device in order, and are rounded there to the codes that the processor would make."""

import numpy as np
import pytest
import torch

from attnstore.capture.device import ROUNDINGS, Copy, as_floats
from attnstore.capture.facts import KindFacts
from attnstore.capture.handover import Complete, Handover
from attnstore.errors import BadInput
from attnstore.format.quantise import PRECISIONS

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FACTS = {"encoder": KindFacts(3, 2, 2, "source", "source", False)}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PRECISIONS)
def test_a_device_rounds_to_the_same_bits(name: str, device: str) -> None:
    every_half = np.arange(0x3C00 + 1, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = (every_half[:-1] + every_half[1:]) / 2
    weights = np.concatenate([every_half, ties, np.random.default_rng(0).random(100_000, np.float32) ** 8])
    codes = Copy(ROUNDINGS[name](torch.from_numpy(weights).to(device))).wait()
    expected = PRECISIONS[name].encode(weights)
    assert codes.dtype == expected.dtype
    np.testing.assert_array_equal(codes.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("device", DEVICES)
def test_rounding_takes_weights_a_little_over_1_and_refuses_others(device: str) -> None:
    over = torch.tensor([1.00005, 0.5], device=device)
    assert Copy(ROUNDINGS["standard"](over)).wait().tolist() == [1.0, 0.5]
    for wrong in (-0.25, 1.5, float("nan")):
        with pytest.raises(BadInput, match="numbers in 0-1"):
            ROUNDINGS["standard"](torch.tensor([0.5, wrong], device=device))


class Late(Copy):
    """A copy that is not there at once, as from a CUDA device."""

    waited = 0

    @property
    def is_there(self) -> bool:
        return False

    def wait(self) -> np.ndarray:
        Late.waited += 1
        return super().wait()


def test_a_layer_is_handed_over_while_the_next_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.capture.handover.Copy", Late)
    found: list[tuple[int, float]] = []
    hand = Handover("m", {"encoder": (1, 2, 3, 3)}, FACTS, lambda kind, layer, w: found.append((layer, w[0, 0, 0, 0])))
    hand.take("encoder", torch.full((1, 2, 3, 3), 0.1))
    assert found == []
    hand.take("encoder", torch.full((1, 2, 3, 3), 0.2))
    assert [layer for layer, _ in found] == [0]
    with pytest.raises(Complete):
        hand.take("encoder", torch.full((1, 2, 3, 3), 0.3))
    hand.finish()
    assert [(layer, round(float(weight), 1)) for layer, weight in found] == [(0, 0.1), (1, 0.2), (2, 0.3)]


def test_a_pass_to_the_end_hands_every_layer_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.capture.handover.Copy", Late)
    found: list[int] = []
    shapes = {"encoder": (1, 2, 3, 3)}
    hand = Handover("m", shapes, FACTS, lambda kind, layer, w: found.append(layer), to_the_end=True)
    hand.take("encoder", torch.zeros(1, 2, 3, 3))
    assert found == [0]


@pytest.mark.gpu
def test_what_is_computed_next_does_not_reach_a_copy_under_way() -> None:
    weights = torch.rand(64, 12, 128, 128, device="cuda")
    expected = weights.cpu().numpy()
    copy = Copy(as_floats(weights))
    del weights
    for _ in range(20):
        torch.zeros(64, 12, 128, 128, device="cuda")  # which would take its memory
    np.testing.assert_array_equal(copy.wait(), expected)
