"""Where the weight of every query goes, on the map of the fixtures and on its borders."""

import numpy as np
import pytest

from attnstore.reduce.axes import Axis, Frame
from attnstore.reduce.head_facts import head_facts
from attnstore.reduce.token_masses import token_masses

# [CLS] a b [SEP]
ROWS = np.array(
    [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]], np.float32
)


def axis(length: int = 4) -> Axis:
    special = np.zeros(length, bool)
    special[[0, -1]] = True
    cls, sep = np.zeros(length, bool), np.zeros(length, bool)
    cls[0], sep[-1] = True, True
    punct = np.zeros(length, bool)
    return Axis(special, cls, sep, punct, np.full(length, -1, np.int32), 0)


def test_masses_of_the_fixture() -> None:
    own = axis()
    masses = {name: column[0] for name, column in token_masses(ROWS[None], Frame(own, own)).items()}
    assert masses["self_mass"] == pytest.approx([0.1, 0.3, 0.25, 0.1])
    assert masses["previous_mass"] == pytest.approx([np.nan, 0.4, 0.25, 0.1], nan_ok=True)
    assert masses["next_mass"] == pytest.approx([0.2, 0.2, 0.25, np.nan], nan_ok=True)
    assert masses["cls_mass"] == pytest.approx([0.1, 0.4, 0.25, 0.7])
    assert masses["sep_mass"] == pytest.approx([0.4, 0.1, 0.25, 0.1])
    assert masses["punct_mass"] == pytest.approx([0, 0, 0, 0])


def test_the_sums_of_masses_are_the_head_facts() -> None:
    rng, own = np.random.default_rng(0), axis(9)
    weights = rng.dirichlet(np.ones(9), (3, 9)).astype(np.float32)
    masses, sums = token_masses(weights, Frame(own, own)), head_facts(weights, Frame(own, own))
    for name in ("self", "previous", "next", "cls", "sep", "punct"):
        assert np.nansum(masses[f"{name}_mass"], axis=1) == pytest.approx(sums[f"{name}_sum"], abs=1e-6)


def test_cross_maps_have_no_neighbours() -> None:
    masses = token_masses(ROWS[None, :2], Frame(axis(2), axis(4)))
    assert np.isnan(masses["self_mass"]).all()
    assert np.isnan(masses["next_mass"]).all()
    assert masses["sep_mass"][0] == pytest.approx([0.4, 0.1])


def test_one_token_has_itself_only() -> None:
    own = Axis(*(np.zeros(1, bool) for _ in range(4)), np.zeros(1, np.int32), 1)
    masses = token_masses(np.ones((2, 1, 1), np.float32), Frame(own, own))
    assert masses["self_mass"].tolist() == [[1], [1]]
    assert np.isnan(masses["previous_mass"]).all()
