"""This file proves the pictures for a terminal: tables, layers x heads, single maps."""

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from attnstore.errors import BadInput
from attnstore.show.cell import width
from attnstore.show.colour import rgb
from attnstore.show.terminal import grid_text, map_text, table_text

NAN = float("nan")

# The scale goes from 0.1 to 0.9, so the five shades begin at 0.1, 0.26, 0.42, 0.58 and 0.74.
GRID = """\
entropy
       head
layer   0 1 2
    0 │  ▒▒██│
    1 │··▓▓░░│
0.100 │  ░░▒▒▓▓██│ 0.900   ·· no value
lowest at layer 0, head 0; highest at layer 0, head 2"""

TABLE = """\
layer      value  form   ok
─────  ─────────  ─────  ────
    0      0.500  dog    true
    1  1.234e-05  日本   -
    2          -  \\x1b[  true
… 2 of 5 rows left out"""

MAP = """\
       key
          q
          u
        t i
        h c
query   e k
0 the │░░██│
1 日  │  ▒▒│
0.100 │  ░░▒▒▓▓██│ 0.900
lowest at query 1 日, key 0 the; highest at query 0 the, key 1 quick"""


def test_a_grid_has_zero_based_edges_a_scale_and_a_mark_for_no_value() -> None:
    assert grid_text([[0.1, 0.5, 0.9], [NAN, 0.7, 0.3]], title="entropy", colour=False) == GRID


def test_a_table_is_aligned_and_says_what_it_left_out() -> None:
    table = pa.table(
        {
            "layer": [0, 1, 2, 3, 4],
            "value": [0.5, 0.000012345, None, 1, 1],
            "form": ["dog", "日本", "\x1b[", "x", "y"],
            "ok": [True, None, True, None, None],
        }
    )
    assert table_text(table, max_rows=3) == TABLE


def test_a_map_has_its_tokens_at_the_edges() -> None:
    # Scale 0.1 to 0.9: 0.3 is in the second shade (from 0.26), 0.5 in the third (from 0.42).
    assert map_text([[0.3, 0.9], [0.1, 0.5]], ["the", "日"], ["the", "quick"], colour=False) == MAP


def test_a_table_without_rows_or_columns_says_so() -> None:
    assert table_text(pa.table({"a": pa.array([], pa.int64())})) == "a\n─\n(no rows)"
    assert table_text(pa.table({})) == "(no columns)"


def test_a_table_of_exactly_the_rows_allowed_leaves_nothing_out() -> None:
    assert "left out" not in table_text(pa.table({"a": [1, 2]}), max_rows=2)
    assert table_text(pa.table({"a": [1, 2]}), max_rows=1).endswith("… 1 of 2 rows left out")


def test_columns_of_one_name_are_both_shown() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert table_text(table) == "a  a\n─  ─\n1  2"


def test_names_of_columns_cannot_steer_the_terminal_and_long_cells_are_cut() -> None:
    shown = table_text(pa.table({"\x1b[2J": ["x" * 100]}), max_width=10)
    assert shown == "\\x1b[2J\n──────────\nxxxxxxxxx…"


def test_colour_draws_each_cell_on_the_colour_of_its_share() -> None:
    shown = grid_text([[0.0, 1.0, NAN]], title="t", colour=True)
    row = shown.splitlines()[3]
    low, high = (";".join(map(str, rgb(share))) for share in (0.0, 1.0))
    assert row == f"    0 │\x1b[48;2;{low}m  \x1b[0m\x1b[48;2;{high}m  \x1b[0m··│"


def test_equal_values_and_no_values_are_told_in_words() -> None:
    assert grid_text([[2.0, 2.0]], title="t", colour=False).splitlines()[-1] == "every value is 2.000"
    assert grid_text([[NAN, NAN]], title="t", colour=False).splitlines()[-1] == "no values"
    assert grid_text(np.zeros((0, 3)), title="t", colour=False) == "t\nno values"
    assert map_text(np.zeros((0, 0)), [], [], colour=False) == "no values"


def test_numbers_of_more_than_ten_heads_read_downwards() -> None:
    lines = grid_text(np.arange(12.0).reshape(1, 12), title="t", colour=False).splitlines()
    assert lines[2] == " " * 27 + " 1 1"
    assert lines[3] == "layer   0 1 2 3 4 5 6 7 8 9 0 1"


def test_other_axes_can_be_named() -> None:
    shown = grid_text([[0.0, 1.0]], title="t", colour=False, label_rows="epoch", label_columns="task")
    assert "epoch   0 1" in shown
    assert "highest at epoch 0, task 1" in shown


def test_token_texts_cannot_steer_the_terminal() -> None:
    shown = map_text([[1.0]], ["\x1b[31m"], ["\u202ea\nb"], colour=False)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    # The key is nine characters once its mark and its line end are written out: \u202ea\nb.
    assert "\\x1b[31m" in shown
    assert len(shown.splitlines()) == 1 + 10 + 1 + 1


def test_a_long_label_of_a_key_is_cut_and_marks_stay_with_their_letter() -> None:
    lines = map_text([[0.0, 1.0]], ["q"], ["e\u0301", "abcdefghijklmnop"], colour=False).splitlines()
    assert len(lines) == 1 + 10 + 1 + 2
    assert lines[10].endswith("e\u0301 …")


def test_labels_that_do_not_fit_the_map_are_refused() -> None:
    with pytest.raises(BadInput, match="two dimensions, 1 x 3"):
        map_text([[1.0, 2.0]], ["a"], ["b", "c", "d"], colour=False)
    with pytest.raises(BadInput, match=r"shape \[2\]"):
        grid_text([1.0, 2.0], title="t", colour=False)


VALUES = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 12)), elements=st.floats(allow_nan=True, width=64)
)


@given(VALUES)
def test_every_row_of_a_picture_has_the_same_width(values: np.ndarray) -> None:
    lines = grid_text(values, title="t", colour=False).splitlines()
    rows = [line for line in lines if line.endswith("│")]
    assert len(rows) == values.shape[0]
    assert {width(row) for row in rows} == {7 + 2 * values.shape[1] + 1}
    coloured = [line for line in grid_text(values, title="t", colour=True).splitlines() if line.endswith("│")]
    assert [width(re.sub("\x1b[^m]*m", "", row)) for row in coloured] == [width(row) for row in rows]
