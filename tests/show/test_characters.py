"""This file proves that cells with names and bars are drawn as aligned text."""

import numpy as np

from attnstore.show.cell import width
from attnstore.show.characters import bars_text, heat_text
from attnstore.store.figures.panels import Bar, Bars, Heat

NAN = float("nan")


def test_bars_have_the_width_of_their_values() -> None:
    lines = bars_text(
        Bars("t", ["accuracy"], [Bar("det", [1.0], note="3-9"), Bar("a", [0.5]), Bar("b", [NAN])]), colour=False
    ).splitlines()
    assert lines == [
        "t",
        f"det {'█' * 40} 1.000  3-9",
        f"a   {'█' * 20}{' ' * 20} 0.500",
        f"b   {' ' * 40} ··",
    ]


def test_a_baseline_is_marked_in_the_bar() -> None:
    lines = bars_text(Bars("t", ["accuracy"], [Bar("det", [1.0], 0.5)], "offset"), colour=False).splitlines()
    assert lines[1] == f"det {'█' * 20}│{'█' * 19} 1.000"
    assert lines[2].endswith("│ marks offset")


def test_parts_of_a_whole_fill_the_width() -> None:
    shares = [1 / 3, 1 / 3, 1 / 3]
    lines = bars_text(Bars("t", ["a", "b", "c"], [Bar("x", shares)], is_whole=True), colour=False).splitlines()
    bar = lines[1].split()[1]
    assert (len(bar), [bar.count(mark) for mark in "█▒▓"]) == (40, [13, 14, 13])
    assert lines[1].endswith("33% 33% 33%")
    assert lines[2] == "██ a   ▒▒ b   ▓▓ c"


def test_cells_bear_the_names_of_their_rows_and_columns() -> None:
    panel = Heat("t", np.array([[0.0, 1.0], [NAN, 0.5]]), ["noun", "verb"], ["[CLS]", "dog"], ("query", "key"), "mass")
    lines = heat_text(panel, colour=False).splitlines()
    assert lines[0] == "t"
    assert [line for line in lines if "│" in line][:2] == [" noun │  ██│", " verb │··▒▒│"]
    assert lines[-1] == "lowest at query noun, key [CLS]; highest at query noun, key dog"


def test_kinds_stand_as_letters_or_as_numbers_where_letters_are_alike() -> None:
    values = np.array([[0.0, 1.0, NAN]])
    heads = ["0", "1", "2"]
    lines = heat_text(Heat("t", values, ["0"], heads, ("layer", "head"), "l", ["cls", "next"]), colour=False)
    assert lines.splitlines()[-2:] == ["    0 cl ne ··", "cl cls  ne next  ·· none"]
    alike = heat_text(Heat("t", values, ["0"], heads, ("layer", "head"), "l", ["next", "nexus"]), colour=False)
    assert alike.splitlines()[-2:] == ["    0  1  2 ··", "1 next  2 nexus  ·· none"]


def test_foreign_texts_do_not_steer_the_terminal() -> None:
    text = bars_text(Bars("\x1b[31m", ["v"], [Bar("\x1b[2J", [1.0], note="\u202e")]), colour=False)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(width, text.splitlines())) < 80
