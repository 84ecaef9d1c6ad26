"""This file draws tables, layers x heads and single maps as lines of text for a terminal."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from attnstore.show import colour as colours
from attnstore.show.cell import clip, number, pad, visible, width, written

SHADES = " ░▒▓█"
NO_VALUE = "··"
LEGEND_STEPS = 16
LABEL_COLUMNS = 16
LABEL_LINES = 10


def table_text(table: pa.Table, *, max_rows: int = 50, max_width: int = 80) -> str:
    """The first rows of a table in aligned columns, and how many were left out; without a newline at the end.

    Numbers stand right and have three decimals, or four significant digits where three decimals would hide them;
    null is "-". A cell wider than `max_width` columns ends in "…".
    """
    if table.num_columns == 0:
        return "(no columns)"
    blocks = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = [clip(written(value), max_width) for value in column.slice(0, max_rows).to_pylist()]
        title = clip(visible(name), max_width)
        columns = max(map(width, [title, *cells]))
        right = is_number(column.type)
        blocks.append([pad(title, columns, right=right), "─" * columns, *(pad(c, columns, right=right) for c in cells)])
    lines = ["  ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
    if table.num_rows == 0:
        lines.append("(no rows)")
    if left_out := left_out_text(table, max_rows):
        lines.append(left_out)
    return "\n".join(lines)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type is aligned at the right."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def left_out_text(table: pa.Table, max_rows: int) -> str:
    """How many rows a picture of the first `max_rows` leaves out; empty for none."""
    count = table.num_rows - max_rows
    return f"… {count:,} of {table.num_rows:,} rows left out" if count > 0 else ""


def grid_text(
    values: ArrayLike, *, title: str, colour: bool, label_rows: str = "layer", label_columns: str = "head"
) -> str:
    """A picture of values [layer, head]: two characters a cell, and below it the scale with its ends.

    `colour` gives 24-bit ANSI backgrounds, else five shades from blank to full. Numbers at the edges are
    zero-based, those of heads read downwards. NaN is "··". Raises BadInput unless there are two dimensions.
    """
    array = colours.matrix(values, f"drawing {title!r}")
    digits = len(str(max(array.shape[1] - 1, 0)))
    heads = [list(str(head).rjust(digits)) for head in range(array.shape[1])]
    rows = [str(layer) for layer in range(array.shape[0])]
    picture = framed(array, rows, heads, visible(label_rows), visible(label_columns), colour)

    def place(row: int, column: int) -> str:
        return f"{visible(label_rows)} {row}, {visible(label_columns)} {column}"

    return "\n".join([visible(title), *picture, *legend(array, place, colour)])


def map_text(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, colour: bool) -> str:
    """A picture of one map [query, key] with the tokens as labels, those of the keys read downwards.

    Otherwise as `grid_text`. Raises BadInput when the shape is not that of the labels.
    """
    array = colours.matrix(weights, "drawing a map", (len(queries), len(keys)))
    names = [[visible(token) for token in side] for side in (queries, keys)]
    digits = len(str(max(len(queries) - 1, 0)))
    longest = max((width(clip(name, LABEL_COLUMNS)) for name in names[0]), default=0)
    rows = [f"{index:>{digits}} {pad(clip(name, LABEL_COLUMNS), longest)}" for index, name in enumerate(names[0])]
    picture = framed(array, rows, stacked(names[1]), "query", "key", colour)

    def place(row: int, column: int) -> str:
        return f"query {row} {clip(names[0][row], LABEL_COLUMNS)}, key {column} {clip(names[1][column], LABEL_COLUMNS)}"

    return "\n".join([*picture, *legend(array, place, colour)])


def framed(
    array: NDArray[np.float64], rows: list[str], stacks: list[list[str]], side: str, top: str, colour: bool
) -> list[str]:
    """The labels above, read downwards, and a framed line for each row; `stacks` are of one height."""
    if not array.size:
        return []
    left = max(map(width, [side, *rows]))
    lines = [" " * (left + 2) + top]
    for level in range(len(stacks[0])):
        is_last = level == len(stacks[0]) - 1
        label = pad(side if is_last else "", left + 2)
        lines.append((label + "".join(pad(stack[level], 2, right=True) for stack in stacks)).rstrip())
    scale = colours.scale(array)
    for name, values in zip(rows, array.tolist(), strict=True):
        cells = "".join(_cell(scale.share(value), colour) for value in values)
        lines.append(f"{pad(name, left, right=True)} │{cells}│")
    return lines


def _cell(share: float, colour: bool) -> str:
    """Two characters for a share of the scale."""
    if share != share:
        return NO_VALUE
    if colour:
        red, green, blue = colours.rgb(share)
        return f"\x1b[48;2;{red};{green};{blue}m  \x1b[0m"
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] * 2


def legend(array: NDArray[np.float64], place: Callable[[int, int], str], colour: bool) -> list[str]:
    """The scale with its ends, and where the lowest and the highest value stand."""
    finite = np.isfinite(array)
    if not finite.any():
        return ["no values"]
    low, high = (
        np.unravel_index(int(np.where(finite, array * sign, np.inf).argmin()), array.shape) for sign in (1, -1)
    )
    missing = f"   {NO_VALUE} no value" if np.isnan(array).any() else ""
    if array[low] == array[high]:
        return [f"every value is {number(float(array[low]))}{missing}"]
    steps = LEGEND_STEPS if colour else len(SHADES)
    ramp = "".join(_cell(step / (steps - 1), colour) for step in range(steps))
    return [
        f"{number(float(array[low]))} │{ramp}│ {number(float(array[high]))}{missing}",
        f"lowest at {place(int(low[0]), int(low[1]))}; highest at {place(int(high[0]), int(high[1]))}",
    ]


def stacked(names: Sequence[str]) -> list[list[str]]:
    """Labels as characters from top to bottom, all of one height; combining marks stay with their letter."""
    stacks: list[list[str]] = []
    for name in names:
        stack: list[str] = []
        for letter in name:
            if stack and width(letter) == 0:
                stack[-1] += letter
            else:
                stack.append(letter)
        stacks.append([*stack[: LABEL_LINES - 1], "…"] if len(stack) > LABEL_LINES else stack)
    height = max(map(len, stacks), default=0)
    return [[""] * (height - len(stack)) + stack for stack in stacks]
