"""This file tests lengths of what heads move: one head's by hand, those of a layer against every vector."""

from typing import Any

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.reduce.axes import Axis, Frame
from attnstore.reduce.norms import VARIANTS, by_layer, has_variant, layer_norm_facts, layer_norms, norm_maps

HEADS, SIZE = 3, 7


def axis(n: int) -> Axis:
    no = np.zeros(n, bool)
    return Axis(no, no, no, no, np.full(n, -1, np.int32), 0)


class Vectors:
    """Random vectors of one layer of one example, and the Gram matrices that a store holds of them."""

    def __init__(self, seed: int, n: int, *, causal: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.f = rng.normal(size=(n, HEADS, SIZE))  # [key, head, size]
        self.x = rng.normal(size=(n, SIZE))
        self.gamma = rng.normal(size=SIZE)
        self.sigma = rng.uniform(0.5, 2, n)
        maps = rng.uniform(size=(HEADS, n, n)) * (np.tri(n) if causal else 1)
        self.maps = maps / maps.sum(axis=-1, keepdims=True)

    def normed(self, vectors: Any) -> Any:
        return self.gamma * (vectors - vectors.mean(axis=-1, keepdims=True))

    @property
    def rows(self) -> dict[str, Any]:
        row, column = np.triu_indices(HEADS)
        found: dict[str, Any] = {"scale": 1 / self.sigma}
        for suffix, f, x in (("", self.f, self.x), ("_ln", self.normed(self.f), self.normed(self.x))):
            found[f"gram{suffix}"] = (f @ f.swapaxes(1, 2))[:, row, column]
            found[f"stream{suffix}"] = np.einsum("khs,ks->kh", f, x)
            found[f"square{suffix}"] = np.square(x).sum(-1)
        return found

    def brute(self, variant: str) -> Any:
        n = len(self.f)
        found = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                vector = sum(self.maps[h, i, j] * self.f[j, h] for h in range(HEADS))
                if variant != "layer_norm" and i == j:
                    vector = vector + self.x[i]
                if variant == "residual_norm_ln":
                    vector = self.normed(vector) / self.sigma[i]
                found[i, j] = np.sqrt(np.square(vector).sum())
        return found


def test_a_weight_counts_times_the_length_of_what_its_head_moves() -> None:
    weights = np.array([[[[0.25, 0.75], [1.0, 0.0]]]])
    norms = np.array([[[4.0, 2.0]]])
    assert norm_maps(weights, norms).tolist() == [[[[1.0, 1.5], [4.0, 0.0]]]]
    shares = norm_maps(weights, norms, shares=True)
    np.testing.assert_allclose(shares, [[[[0.4, 0.6], [1.0, 0.0]]]], rtol=1e-6)


def test_a_row_that_moves_nothing_stays_without_a_share() -> None:
    found = norm_maps(np.array([[[[0.0, 1.0]]]]), np.array([[[3.0, 0.0]]]), shares=True)
    assert found.tolist() == [[[[0.0, 0.0]]]]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(4))
def test_the_root_of_a_gram_a_is_the_length_of_the_sum(variant: str, seed: int) -> None:
    one = Vectors(seed, 1 + 3 * seed)
    np.testing.assert_allclose(layer_norms(one.maps, one.rows, variant), one.brute(variant), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
def test_facts_of_layers_are_sums_over_pairs_of_classes(causal: bool) -> None:
    layers = [Vectors(seed, 6, causal=causal) for seed in (1, 2)]
    classes = np.array(["b", "a", "b", "c", "a", "b"], object)
    rows = {"class": classes} | {
        name: np.concatenate([layer.rows[name] for layer in layers]) for name in layers[0].rows
    }
    own = axis(6)
    found = layer_norm_facts(np.stack([layer.maps for layer in layers]), Frame(own, own, causal), rows)
    visible = np.tri(6, dtype=bool) if causal else np.ones((6, 6), bool)
    assert len(found["layer"]) == 2 * 9
    for at, layer in enumerate(found["layer"].tolist()):
        query, key = classes == found["query_class"][at], classes == found["key_class"][at]
        pairs = np.outer(query, key) & visible
        assert found["n_pairs"][at] == pairs.sum()
        assert found["n_queries"][at] == query.sum()
        for variant in VARIANTS:
            expected = layers[layer].brute(variant)[pairs].sum()
            assert found[f"{variant}_sum"][at] == pytest.approx(expected, abs=1e-9)


def test_a_model_without_a_norm_of_the_sum_has_no_length_after_it() -> None:
    one = Vectors(5, 4)
    none = np.full(4, np.nan)
    rows = one.rows | {"gram_ln": np.zeros((4, 0)), "stream_ln": np.zeros((4, 0)), "square_ln": none, "scale": none}
    assert [has_variant(rows, variant) for variant in VARIANTS] == [True, True, False]
    own = axis(4)
    facts = layer_norm_facts(one.maps[None], Frame(own, own), rows | {"class": np.array(["a"] * 4, object)})
    assert np.isnan(facts["residual_norm_ln_sum"]).all()
    assert facts["residual_norm_sum"][0] == pytest.approx(one.brute("residual_norm").sum())


def test_rows_of_layers_come_layer_by_layer() -> None:
    parts = list(by_layer({"gram": np.arange(12).reshape(6, 2), "scale": np.arange(6)}, 3))
    assert [part["scale"].tolist() for part in parts] == [[0, 1], [2, 3], [4, 5]]
    assert parts[2]["gram"].tolist() == [[8, 9], [10, 11]]


def test_what_does_not_fit_the_map_is_refused() -> None:
    one = Vectors(0, 3)
    with pytest.raises(BadInput, match="one of layer_norm"):
        layer_norms(one.maps, one.rows, "sum")
    with pytest.raises(BadInput, match="gram"):
        layer_norms(one.maps[:2], one.rows, "layer_norm")
