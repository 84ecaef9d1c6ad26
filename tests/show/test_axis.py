"""This file proves that axes place values in proportion and have round numbers inside their ends."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.show.axis import Axis, extent, tick_text

FINITE = st.floats(-1e9, 1e9, allow_nan=False)


def test_values_are_placed_in_proportion_also_backwards() -> None:
    assert [Axis(0, 4, 10, 50).at(value) for value in (0, 1, 4)] == [10, 20, 50]
    assert Axis(0, 4, 50, 10).at(1) == 40
    assert Axis(2, 2, 10, 50).at(2) == 30


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 6, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-16, 16, 5, [-10, 0, 10]),
        (0.3, 0.35, 5, [0.3, 0.31, 0.32, 0.33, 0.34, 0.35]),
        (3, 3, 6, [3]),
    ],
)
def test_ticks_are_round(low: float, high: float, most: int, expected: list[float]) -> None:
    assert Axis(low, high, 0, 1).ticks(most) == pytest.approx(expected)


def test_ticks_of_layers_are_whole() -> None:
    assert Axis(-0.04, 1.04, 0, 1).ticks(12, whole=True) == [0, 1]
    assert Axis(0, 11, 0, 1).ticks(6, whole=True) == [0, 2, 4, 6, 8, 10]


@given(low=FINITE, span=st.floats(1e-6, 1e9))
def test_ticks_lie_on_the_axis_and_are_few(low: float, span: float) -> None:
    high = low + span
    found = Axis(low, high, 0, 1).ticks(6)
    assert len(found) <= 8
    slack = span * 1e-6 + abs(low) * 1e-9
    assert all(low - slack <= tick <= high + slack for tick in found)


def test_the_extent_is_that_of_the_finite_values() -> None:
    assert extent([1.0, math.nan, 3.0, math.inf]) == (1.0, 3.0)
    assert extent([]) == (0.0, 1.0)
    assert extent([1.0, 3.0], pad=0.5) == (0.0, 4.0)
    assert extent([2.0], pad=0.5) == (1.0, 3.0)


def test_the_extent_of_bars_begins_at_zero() -> None:
    assert extent([0.5, 1.0], zero=True) == (0.0, 1.0)
    assert extent([-0.5], zero=True) == (-0.5, 0.0)
    assert extent([0.0], zero=True) == (0.0, 1.0)
    assert extent([-1.0, 1.0], pad=0.1, zero=True) == pytest.approx((-1.2, 1.2))


def test_a_tick_has_no_digits_of_floating_point() -> None:
    assert [tick_text(value) for value in (0.1 + 0.2, 0.0, -0.0, 10.0)] == ["0.3", "0", "0", "10"]
