"""Attributions and contributions add up to logits, and each is what another road gives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnstore.capture.evidence.attributions import paths
from attnstore.capture.evidence.contributions import contributions, find_reading
from attnstore.capture.instrument import Watch
from attnstore.errors import NotCaptured
from tests.capture.float64 import Bench, benches, edited, maps_in_float64

__all__ = ["benches", "maps_in_float64"]  # fixtures


class Scaled(Watch):
    """Multiplies the outputs of all heads of one layer."""

    def __init__(self, layer: int, scale: float) -> None:
        self.layer, self.scale = layer, scale

    def heads(self, circuit: Any, outputs: Tensor) -> Tensor | None:
        return outputs * self.scale if circuit.layer == self.layer else None


@pytest.mark.parametrize(
    ("family", "steps"),
    [
        ("bert", 80),
        *[pytest.param(name, 400, marks=pytest.mark.slow) for name in ("gpt2", "vit", "albert", "llama", "deberta_v2")],
    ],
)
def test_attributions_of_a_layer_add_up_to_what_its_maps_change_in_the_logit(
    benches: Any, family: str, steps: int
) -> None:
    bench = benches(family, "classification")
    with torch.no_grad():
        whole = bench.instrument.run(bench.inputs).logits
    # What is left out shrinks with the square of the steps, and weights this large need many.
    for layer, path in enumerate(paths(bench.instrument, bench.task, bench.items, bench.inputs, steps=steps)):
        with torch.no_grad():
            without = bench.instrument.run(bench.inputs, Scaled(layer, 0.0)).logits
        for row, n in enumerate(bench.tokens):
            change = float(whole[row, row] - without[row, row])  # the labels are good and bad, classes 0 and 1
            assert path.change[row] == pytest.approx(change, abs=1e-9)
            total = sum(float(block.sum(dtype=np.float64)) for block in path.blocks(row, n, n))
            assert total == pytest.approx(change, abs=5e-3 * max(1.0, abs(change)))


def test_an_attribution_is_the_weight_times_the_mean_gradient_along_the_path(benches: Any) -> None:
    bench, steps, layer = benches("bert", "classification"), 4, 0
    path = next(paths(bench.instrument, bench.task, bench.items, bench.inputs, steps=steps))
    means = torch.zeros(path.slope.weights.shape, dtype=torch.float64)
    with torch.no_grad():
        maps = list[Tensor]()
        bench.instrument.run(bench.inputs, receive=lambda _, __, weights: maps.append(torch.from_numpy(weights)))
    for step in range(steps):
        # Autograd by the map itself, scaled in the model's own function: another road than z = A V.
        scale = (step + 0.5) / steps
        delta = ((scale - 1) * maps[layer].double()).requires_grad_()
        with edited(bench, {layer: delta}):
            logits = bench.instrument.run(bench.inputs).logits
        (own,) = torch.autograd.grad(logits[0, 0] + logits[1, 1], [delta])
        means += own / steps
    for row, n in enumerate(bench.tokens):
        expected = (maps[layer] * means)[row, :, :n, :n].numpy()
        found = np.concatenate(list(path.blocks(row, n, n)), axis=1)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_logit_of_an_example_without_a_label_is_that_of_the_predicted_class(benches: Any) -> None:
    bench = benches("bert", "classification")
    items = [replace(item, label=None) for item in bench.items]
    with torch.no_grad():
        whole, without = (bench.instrument.run(bench.inputs, Scaled(0, scale)).logits for scale in (1.0, 0.0))
    path = next(paths(bench.instrument, bench.task, items, bench.inputs, steps=1))
    place = whole.argmax(1)
    np.testing.assert_allclose(path.change, (whole - without).gather(1, place[:, None])[:, 0].numpy(), atol=1e-9)


class Parts(Watch):
    """Keeps what layers read and what their heads add."""

    def __init__(self) -> None:
        self.streams: list[Tensor] = []

    def stream(self, circuit: Any, hidden: Tensor) -> None:
        self.streams.append(hidden)


BLOCKS = {"gpt2": "transformer.h", "vit": "vit.layers", "llama": "model.layers"}
LAST = {"gpt2": "transformer.ln_f", "vit": "vit.layernorm", "llama": "model.norm"}
HEAD = {"gpt2": "score", "vit": "classifier", "llama": "score"}


@pytest.mark.parametrize("family", ["gpt2", "vit", "llama"])
def test_contributions_and_the_other_parts_of_the_stream_add_up_to_the_logit(benches: Any, family: str) -> None:
    bench = benches(family, "classification")
    bench.model.requires_grad_(False)
    reading = find_reading(bench.instrument)
    found = list(contributions(bench.instrument, reading, bench.task, bench.items, bench.inputs))
    # Everything else that is added to the stream, taken by hooks on modules that this test knows by name.
    kept: dict[str, Tensor] = {}
    hooks = [
        bench.model.get_submodule(f"{BLOCKS[family]}.{layer}.mlp").register_forward_hook(
            lambda _, __, output, layer=layer: kept.__setitem__(f"mlp {layer}", output)
        )
        for layer in range(len(found))
    ]
    hooks.append(
        bench.model.get_submodule(LAST[family]).register_forward_hook(
            lambda _, given, __: kept.__setitem__("stream", given[0])
        )
    )
    parts = Parts()
    with torch.no_grad():
        logits = bench.instrument.run(bench.inputs, parts).logits
    for hook in hooks:
        hook.remove()
    classifier, norm = bench.model.get_submodule(HEAD[family]), bench.model.get_submodule(LAST[family])
    biases = [getattr(circuit.output, "bias", None) for circuit in bench.instrument.circuits]
    added = [parts.streams[0], *(kept[f"mlp {layer}"] for layer in range(len(found)))]
    added += [bias.expand_as(added[0]) for bias in biases if bias is not None]
    for row in range(len(bench.items)):
        token = 0 if family == "vit" else _read_token(bench, row)
        stream = kept["stream"][row, token]
        centre = (lambda x: x) if family == "llama" else (lambda x: x - x.mean())
        eps = 1e-6 if family == "llama" else norm.eps
        divisor = torch.sqrt(centre(stream).square().mean() + eps)
        label = row  # good, bad
        direct = [
            float(classifier.weight[label] @ (norm.weight * centre(part[row, token]) / divisor)) for part in added
        ]
        constant = 0.0 if family == "llama" else float(classifier.weight[label] @ norm.bias)
        constant += 0.0 if classifier.bias is None else float(classifier.bias[label])
        heads = sum(float(one.true[row].sum()) for one in found)
        assert heads + sum(direct) + constant == pytest.approx(float(logits[row, label]), abs=1e-6)
        assert abs(heads) > 1e-3


def _read_token(bench: Bench, row: int) -> int:
    """The last token that is no padding, to which such classifiers go by the ids."""
    ids = bench.inputs["input_ids"][row]
    return int((ids != bench.model.config.pad_token_id).nonzero().max())


def test_the_contribution_to_the_true_class_is_absent_without_a_label(benches: Any) -> None:
    bench = benches("gpt2", "classification")
    items = [replace(bench.items[0], label=None), bench.items[1]]
    one = next(contributions(bench.instrument, find_reading(bench.instrument), bench.task, items, bench.inputs))
    assert bool(one.true[0].isnan().all())
    assert bool(one.true[1].isfinite().all())
    assert bool(one.predicted.isfinite().all())


@pytest.mark.parametrize(("family", "reason"), [("bert", "no norm before the heads"), ("albert", "no norm before")])
def test_a_model_whose_logits_are_no_sum_of_what_heads_add_is_refused(benches: Any, family: str, reason: str) -> None:
    with pytest.raises(NotCaptured, match=reason):
        find_reading(benches(family, "classification").instrument)


def test_a_classifier_that_bends_what_it_reads_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "gpt2", "classification")
    score: Any = bench.model.score
    bench.model.score = torch.nn.Sequential(score, torch.nn.Tanh(), torch.nn.Linear(2, 2).double())
    bench.model.float()
    with pytest.raises(NotCaptured, match="between the last norm and the classifier"):
        find_reading(bench.instrument)
