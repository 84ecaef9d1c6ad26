"""This file proves that the colour scale is even, monotone and the same in every picture."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.show.bitmap import pixels
from attnstore.show.colour import ANCHORS, GREY, KINDS, Scale, matrix, rgb, scale, series, web

NAN = math.nan


def lightness(colour: tuple[int, int, int]) -> float:
    """L* of CIE 1976, from 0 to 100."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return float(116 * luminance ** (1 / 3) - 16)


def test_equal_steps_of_the_share_are_equal_steps_of_lightness() -> None:
    steps = np.diff([lightness(rgb(share)) for share in np.linspace(0, 1, 11)])
    # The whole way is from 15 to 91: a tenth of it is 7.6.
    assert steps.min() > 3
    assert steps.max() < 12
    assert all(np.diff([lightness(rgb(share)) for share in np.linspace(0, 1, 101)]) > 0)


def test_the_ends_and_the_middle_of_a_step_are_exact() -> None:
    assert rgb(0) == ANCHORS[0]
    assert rgb(1) == ANCHORS[-1]
    assert rgb(0.5) == ANCHORS[5]
    # Half way from (0x44, 0x01, 0x54) to (0x48, 0x24, 0x75): 70, 18.5, 100.5; halves round to even.
    assert rgb(0.05) == (70, 18, 100)
    assert web(1) == "#fde725"
    assert rgb(-3) == rgb(0)
    assert rgb(7) == rgb(1)


def test_shares_lie_between_the_lowest_and_the_highest_finite_value() -> None:
    scope = scale(np.array([[1.0, 3.0], [NAN, math.inf]]))
    assert scope == Scale(1.0, 3.0)
    assert [scope.share(value) for value in (1.0, 2.0, 3.0, math.inf, -math.inf)] == [0, 0.5, 1, 1, 0]
    assert math.isnan(scope.share(NAN))


def test_equal_or_absent_values_have_a_scale_too() -> None:
    assert Scale(2.0, 2.0).share(2.0) == 0.0
    empty = scale(np.array([[NAN]]))
    assert math.isnan(empty.low)
    assert math.isnan(empty.share(1.0))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=20))
@example([5e-324, 0.0])  # halving the smallest number gives zero
@example([1.7e308, -1.7e308, 0.0])  # the distance between these is infinite
def test_every_share_is_between_zero_and_one_even_at_the_ends_of_float(values: list[float]) -> None:
    scope = scale(np.array([values]))
    for value in values:
        share = scope.share(value)
        assert math.isnan(share) if math.isnan(value) else 0 <= share <= 1
    drawn = pixels(np.array([values]), scope)[0, :, 3]
    assert drawn.tolist() == [0 if math.isnan(value) else 255 for value in values]


def test_the_pixels_of_an_image_have_the_colours_of_the_cells() -> None:
    values = np.append(np.linspace(-1, 2, 62), [NAN, NAN]).reshape(8, 8)
    scope = scale(values)
    image = pixels(values, scope)
    for place, value in np.ndenumerate(values):
        if math.isnan(value):
            assert image[place].tolist() == [0, 0, 0, 0]
        else:
            want = np.array([*rgb(scope.share(float(value))), 255])
            assert np.abs(image[place].astype(int) - want).max() <= 1


def test_a_shape_that_cannot_be_drawn_is_refused() -> None:
    assert matrix([[1, 2]], "drawing").dtype == np.float64
    with pytest.raises(BadInput, match=r"drawing: an array of shape \[1, 2, 1\]; expected two dimensions"):
        matrix([[[1], [2]]], "drawing")


def test_kinds_have_colours_far_apart_and_an_order_follows_the_scale() -> None:
    kinds = [series(index, len(KINDS)) for index in range(len(KINDS))]
    assert kinds == list(KINDS)
    assert len({*kinds, GREY}) == len(KINDS) + 1
    many = [series(index, 30) for index in range(30)]
    assert (many[0], many[-1]) == (web(0.2), web(0.88))
    assert len(set(many)) == 30
    assert series(0, 2, is_ordered=True) == web(0.2)
    assert series(0, 1, is_ordered=True) == web(0.2)


def test_colours_of_series_stand_out_from_both_papers() -> None:
    def light(colour: str) -> float:
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for colour in (*KINDS, GREY):
        for paper in ("#ffffff", "#0d1117"):
            high, low = sorted((light(colour), light(paper)), reverse=True)
            assert (high + 0.05) / (low + 0.05) > 2
