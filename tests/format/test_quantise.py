"""Codes keep weights within the error that each precision states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.quantise import PRECISIONS, _halves, checked_weights, encoder


def test_every_precision_that_a_store_may_name_is_known() -> None:
    assert tuple(PRECISIONS) == names.PRECISIONS


WEIGHTS = arrays(np.float32, st.integers(1, 300), elements=st.floats(0, 1, width=32))


@pytest.mark.parametrize("name", PRECISIONS)
@given(weights=WEIGHTS)
def test_a_code_is_within_half_a_step_of_its_weight(name: str, weights: np.ndarray) -> None:
    precision = PRECISIONS[name]
    codes = precision.encode(weights)
    assert codes.dtype == precision.dtype
    error = np.abs(precision.decode(codes) - weights)
    assert (error <= precision.half_step(codes) * (1 + 1e-5) + 1e-12).all()


@given(weights=WEIGHTS)
def test_graded_rounding_is_the_published_formula(weights: np.ndarray) -> None:
    _, exponent = np.frexp(weights.astype(np.float64))
    step = np.ldexp(1.0, np.floor(exponent / 2).astype(int) - 10)
    expected = (np.rint(weights.astype(np.float64) / step) * step).astype(np.float16)
    assert np.array_equal(PRECISIONS["standard"].encode(weights), expected)


def test_compiled_rounding_gives_the_same_bits() -> None:
    pytest.importorskip("numba")
    precision, random = PRECISIONS["standard"], np.random.default_rng(0)
    every_half = np.arange(0x3C00 + 1, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (every_half[:-1] + every_half[1:]) / 2  # ties
    weights = np.concatenate([every_half, between, random.random(200_000, np.float32) ** 8]).astype(np.float32)
    compiled = encoder(precision, compiled=True)
    assert compiled is not precision.encode
    np.testing.assert_array_equal(compiled(weights).view(np.uint16), precision.encode(weights).view(np.uint16))
    assert compiled(weights[:12].reshape(2, 3, 2)).shape == (2, 3, 2)


@pytest.mark.parametrize("name", PRECISIONS)
def test_rounding_twice_changes_nothing(name: str) -> None:
    precision = PRECISIONS[name]
    # Below 2^-20 a code can lie on half of its own step, where rounding again may end in 0.
    weights = np.random.default_rng(0).random(10_000, np.float32) ** 4
    weights = weights[weights > 2.0**-19]
    once = precision.decode(precision.encode(weights))
    assert np.array_equal(precision.decode(precision.encode(once)), once)


@pytest.mark.parametrize("name", PRECISIONS)
def test_zero_and_one_are_exact(name: str) -> None:
    precision = PRECISIONS[name]
    ends = np.array([0, 1], np.float32)
    assert np.array_equal(precision.decode(precision.encode(ends)), ends)


def test_every_half_in_0_to_1_is_cast_as_numpy_casts_it() -> None:
    every = np.arange(0x3C00 + 1, dtype=np.uint16).view(np.float16)
    assert np.array_equal(_halves(every.astype(np.float32), np.empty(every.shape, np.int32)), every.view(np.uint16))


def test_the_largest_errors_are_those_that_the_format_states() -> None:
    weights = np.linspace(0, 1, 1_000_003, dtype=np.float32)
    largest = {
        name: float(np.abs(precision.decode(precision.encode(weights)) - weights).max())
        for name, precision in PRECISIONS.items()
    }
    # standard: weights in [0.5, 1) have e = 0, so the step is 2^-10 and the error at most 2^-11.
    # compact: |w - (c/255)^2| is largest near 1, where one code step is 2/255 - 1/255^2 wide.
    assert largest["standard"] == pytest.approx(2**-11, rel=1e-2)
    assert largest["compact"] == pytest.approx(1 / 255, rel=1e-2)
    assert largest["exact"] == 0


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.5, float("inf")])
def test_weights_outside_0_to_1_are_refused_by_name(value: float) -> None:
    weights = np.array([0.5, value], np.float32)
    with pytest.raises(BadInput, match="storing s1"):
        checked_weights(weights, "storing s1")


def test_a_hair_above_one_is_clipped() -> None:
    weights = np.array([1.00001, 0.5], np.float32)
    assert checked_weights(weights, "storing").max() == 1.0
