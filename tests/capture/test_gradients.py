"""Gradients by the weights of maps against autograd through the maps, central differences, and plain sums."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnstore.capture.evidence import gradients as gradients_module
from attnstore.capture.evidence import shelf as shelf_module
from attnstore.capture.evidence.gradients import SUMS, slopes
from attnstore.capture.instrument import Inputs, Watch
from attnstore.capture.tasks import Classification
from attnstore.errors import NotCaptured
from tests.capture.float64 import benches, edited, maps_in_float64

__all__ = ["benches", "maps_in_float64"]  # fixtures

CASES = [
    ("bert", "classification"),
    ("albert", "classification"),
    ("vit", "classification"),
    ("gpt2", "classification"),
    ("bert", "masked_lm"),
    ("gpt2", "causal_lm"),
]
OTHERS = [
    ("llama", "classification"),
    ("deberta_v2", "classification"),
    ("mpnet", "masked_lm"),
    ("bloom", "causal_lm"),
    ("bert", "regression"),
]


@pytest.mark.parametrize(("family", "task"), CASES)
def test_a_gradient_is_that_of_autograd_through_the_maps(benches: Any, family: str, task: str) -> None:
    bench, maps = benches(family, task), list[Tensor]()
    found = bench.slopes()
    with edited(bench, {}, maps):
        bench.loss().sum().backward()
    assert len(found) == len(maps) >= 2
    for slope, weights in zip(found, maps, strict=True):
        for row, n in enumerate(bench.tokens):
            assert weights.grad is not None
            own = weights.grad[row, :, :n, :n]
            expected = own.tril() if slope.is_causal else own
            assert float(expected.abs().max()) > 1e-6
            torch.testing.assert_close(bench.gradient(slope, row), expected, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize(("family", "task"), CASES)
def test_a_gradient_is_the_change_of_the_loss_when_one_weight_changes(benches: Any, family: str, task: str) -> None:
    bench, step = benches(family, task), 1e-5
    found, n = bench.slopes(), bench.tokens[1]
    rng = np.random.default_rng(1)
    for layer, slope in enumerate(found):
        gradient = bench.gradient(slope, 1)
        for _ in range(4):
            head, query = int(rng.integers(slope.circuit.heads)), int(rng.integers(n))
            key = int(rng.integers(query + 1 if slope.is_causal else n))
            losses = []
            for sign in (1, -1):
                delta = torch.zeros(slope.weights.shape, dtype=torch.float64)
                delta[1, head, query, key] = sign * step
                with torch.no_grad(), edited(bench, {layer: delta}):
                    losses.append(float(bench.loss()[1]))
            change = (losses[0] - losses[1]) / (2 * step)
            assert float(gradient[head, query, key]) == pytest.approx(change, abs=1e-8, rel=1e-5)


@pytest.mark.parametrize(("family", "task"), CASES + OTHERS)
def test_gates_add_up_to_weights_times_gradients(benches: Any, family: str, task: str) -> None:
    bench = benches(family, task)
    for slope in bench.slopes():
        for row, n in enumerate(bench.tokens):
            # The maps come in float32.
            edges = torch.stack([(weights * gradient).sum((1, 2)) for _, weights, gradient in slope.blocks(row, n, n)])
            gates = slope.gates(row, n)
            assert gates.shape == (slope.circuit.heads, n)
            np.testing.assert_allclose(gates.sum(axis=1), edges.sum(0).numpy(), atol=1e-6)


class Gate(Watch):
    """Multiplies the output of one head by a number."""

    def __init__(self, layer: int, head: int, gate: float) -> None:
        self.layer, self.head, self.gate = layer, head, gate

    def heads(self, circuit: Any, outputs: Tensor) -> Tensor | None:
        if circuit.layer != self.layer:
            return None
        gates = torch.ones(circuit.heads, 1, 1, dtype=outputs.dtype)
        gates[self.head] = self.gate
        return outputs * gates


@pytest.mark.parametrize(("family", "task"), [("bert", "classification"), ("bloom", "causal_lm")])
def test_importance_is_the_change_of_the_loss_when_a_gate_on_the_head_changes(
    benches: Any, family: str, task: str
) -> None:
    bench, step = benches(family, task), 1e-5
    for slope in bench.slopes():
        for head in range(slope.circuit.heads):
            with torch.no_grad():
                more, less = (bench.loss(Gate(slope.circuit.layer, head, 1 + sign * step)) for sign in (1, -1))
            change = (more - less) / (2 * step)
            for row, n in enumerate(bench.tokens):
                own = slope.gates(row, n)[head].sum()
                assert own == pytest.approx(float(change[row]), abs=1e-8, rel=1e-5)


def test_the_gradient_of_an_example_is_the_same_alone_and_beside_others(benches: Any) -> None:
    bench = benches("bert", "masked_lm")
    together = bench.slopes()
    n = bench.tokens[1]
    alone_inputs = {name: value[1:, :n] for name, value in bench.inputs.items()}
    alone = list(slopes(bench.instrument, bench.task, bench.items[1:], alone_inputs))
    for one, other in zip(together, alone, strict=True):
        own = torch.cat([gradient for _, _, gradient in other.blocks(0, n, n)], dim=1)
        torch.testing.assert_close(bench.gradient(one, 1), own, atol=1e-12, rtol=1e-9)


def test_an_example_without_a_label_has_no_gradient_and_disturbs_no_other(benches: Any) -> None:
    bench = benches("bert", "regression")
    whole = bench.slopes()
    items = [bench.items[0], replace(bench.items[1], label=None)]
    for slope, before in zip(slopes(bench.instrument, bench.task, items, bench.inputs), whole, strict=True):
        assert slope.scored.tolist() == [True, False]
        assert slope.is_finite(0, 7, 7)
        assert not slope.is_finite(1, 4, 4)
        torch.testing.assert_close(bench.gradient(slope, 0), bench.gradient(before, 0))


def test_class_sums_are_plain_sums_over_pairs_also_in_small_blocks(
    benches: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = benches("bert", "classification")
    slope, n = bench.slopes()[1], bench.tokens[0]
    gradient, weights = bench.gradient(slope, 0).numpy(), slope.weights[0, :, :n, :n].double().numpy()
    of_query, of_key = np.eye(2)[[0, 1, 1, 0, 1, 1, 0]], np.eye(3)[[0, 1, 2, 2, 1, 1, 0]]
    expected = {
        "abs_gradient": np.abs(gradient),
        "gradient_weight": weights * gradient,
        "abs_gradient_weight": np.abs(weights * gradient),
        "weight": weights,
    }
    assert set(expected) == set(SUMS)
    for cells in (2**20, 3 * n * slope.circuit.heads):
        monkeypatch.setattr(gradients_module, "BLOCK_CELLS", cells)
        found = slope.class_sums(0, of_query, of_key)
        for name, values in expected.items():
            plain = np.zeros((slope.circuit.heads, 2, 3))
            for query, key in np.ndindex(n, n):
                plain[:, of_query[query].argmax(), of_key[key].argmax()] += values[:, query, key]
            np.testing.assert_allclose(found[name], plain, rtol=1e-12, atol=1e-15)


def test_what_does_not_fit_in_memory_waits_in_files_and_gives_the_same_gradients(
    benches: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = benches("bert", "masked_lm")
    held = [bench.gradient(slope, 0) for slope in bench.slopes()]
    filed = []
    monkeypatch.setattr(shelf_module, "HELD_BYTES", 0)
    monkeypatch.setattr(shelf_module, "_SMALL", 0)
    real = np.save
    monkeypatch.setattr(shelf_module.np, "save", lambda path, array: (filed.append(path), real(path, array)))
    again = [bench.gradient(slope, 0) for slope in bench.slopes()]
    assert len(filed) > 10
    assert not any(path.exists() for path in filed)
    for one, other in zip(held, again, strict=True):
        torch.testing.assert_close(one, other, atol=0, rtol=0)


def test_a_loss_without_gradients_is_refused(benches: Any) -> None:
    bench = benches("bert", "classification")

    class Detached(Classification):
        def score(self, output: Any, batch: Any, inputs: Inputs) -> Any:
            found = super().score(output, batch, inputs)
            return replace(found, loss=found.loss.detach())

    with pytest.raises(NotCaptured, match="computed without gradients"):
        next(slopes(bench.instrument, Detached(["good", "bad"]), bench.items, bench.inputs))
