"""This file proves that any text can be printed without steering the terminal, and that its width is known."""

import datetime
import decimal
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.show.cell import clip, number, pad, visible, width, written


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [CLS] ##ing Ġthe", "plain [CLS] ##ing Ġthe"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("a\u2028b", "a\\u2028b"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("日本語", "日本語"),
    ],
)
def test_characters_that_steer_are_written_out_and_letters_stay(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_no_shown_text_holds_a_control_character(text: str) -> None:
    shown = visible(text)
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Cs", "Zl", "Zp", "Cn"}
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("שלום", 4), ("\uff21", 2), ("", 0), ("한", 2)],
)
def test_wide_and_combining_characters_are_counted_as_they_are_drawn(text: str, columns: int) -> None:
    assert width(text) == columns


def test_a_clipped_text_never_takes_more_than_its_columns() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdef", 5) == "abcd…"
    # Two wide characters take four columns; a third would leave no room for the ellipsis.
    assert clip("日本語", 5) == "日本…"
    assert clip("日本語", 4) == "日…"


@given(st.text(), st.integers(1, 30))
def test_clipping_and_padding_give_exactly_the_width_asked_for_or_one_less(text: str, columns: int) -> None:
    shown = clip(visible(text), columns)
    assert width(shown) <= columns
    assert width(pad(shown, columns)) == width(pad(shown, columns, right=True)) == columns


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.000"),
        (0.5, "0.500"),
        (-1.23456, "-1.235"),
        (0.00099949, "0.0009995"),
        (0.000012345, "1.234e-05"),
        (-0.0002, "-0.0002"),
        (0.001, "0.001"),
        (123456.7891, "123456.789"),
        (1.5e12, "1.5e+12"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
    ],
)
def test_a_small_number_is_never_hidden_as_zero(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (True, "true"),
        (7, "7"),
        (0.25, "0.250"),
        (decimal.Decimal("12"), "12"),
        (decimal.Decimal("0.5"), "0.500"),
        (b"\x1b", "0x1b"),
        ([1, None, 0.5], "[1, -, 0.500]"),
        ({"a": "\x1b", "b": [True]}, "{a: \\x1b, b: [true]}"),
        (datetime.date(2019, 6, 11), "2019-06-11"),
    ],
)
def test_any_value_has_a_written_form(value: object, shown: str) -> None:
    assert written(value) == shown
