"""This file draws layers x heads, single maps and other tables of values as coloured cells."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnstore.show.bitmap import data_url
from attnstore.show.cell import clip, number, visible, width
from attnstore.show.colour import Scale, matrix, scale, series, web
from attnstore.show.markup import Markup
from attnstore.show.svg import BOLD, FONT, SANS, Drawing, hover, longest, svg, swatches, text

CELL = 22
LABEL_COLUMNS = 24
WIDEST = 1100
MOST_CELLS = 16_384

Place = Callable[[int, int], str]


def grid_svg(values: ArrayLike, *, title: str, unit: str) -> Markup:
    """A picture of values [layer, head], a coloured cell each with its number on hover; axes are zero-based.

    The scale below goes from the lowest to the highest finite value; NaN is an empty frame. Raises BadInput
    unless there are two dimensions.
    """
    array = matrix(values, f"drawing {title!r}")
    names = [[str(index) for index in range(side)] for side in array.shape]
    return svg(heatmap(array, title, unit, names, ("layer", "head")))


def map_svg(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str) -> Markup:
    """A picture of one map [query, key] with the tokens at its edges; above 16,384 cells an image without hovers.

    Raises BadInput when the shape is not that of the labels.
    """
    array = matrix(weights, f"drawing {title!r}", (len(queries), len(keys)))
    names = [[clip(visible(token), LABEL_COLUMNS) for token in side] for side in (queries, keys)]

    def place(row: int, column: int) -> str:
        return f"query {row} {queries[row]}, key {column} {keys[column]}"

    return svg(heatmap(array, title, "weight", names, ("query", "key"), place))


def heatmap(
    array: NDArray[np.float64],
    title: str,
    unit: str,
    names: Sequence[Sequence[str]],
    axes: tuple[str, str],
    place: Place | None = None,
    kinds: Sequence[str] = (),
    ends: tuple[float, float] | None = None,
) -> Drawing:
    """Values [row, column] as coloured cells; `names` are the finished labels of rows and columns.

    `place` names a cell on hover; `ends` are those of the scale, if not of the values. With `kinds` the values are
    indices into them, each with a colour of its own.
    """
    where = place or (lambda row, column: f"{axes[0]} {names[0][row]}, {axes[1]} {names[1][column]}")
    scope = Scale(*ends) if ends else scale(array)
    size = max(1, min(CELL, WIDEST // max(*array.shape, 1)))
    has_long_names = max(map(len, names[1]), default=0) > 2
    left = max(longest(names[0]), (len(axes[0]) + 2) * SANS) + 14
    top = 44 + (longest(names[1]) if has_long_names else 14)
    rows, columns = array.shape
    parts = [text(8, 18, title, "attn-t attn-b")]
    parts.append(text(left, 38, f"{axes[1]} →", "attn-t"))
    parts.append(text(left - 8, top - 6, f"{axes[0]} ↓", "attn-t", "end"))
    # Labels that would overlap are left out, every so many; those on hover are complete.
    line = FONT + 1
    for index in range(0, rows, math.ceil(line / size)):
        parts.append(text(left - 6, top + size * index + size / 2 + 4, names[0][index], "attn-k", "end"))
    space = line if has_long_names else longest(names[1]) + 4
    for index in range(0, columns, math.ceil(space / size)):
        x = left + size * index + size / 2
        if has_long_names:
            parts.append(text(x + 4, top - 6, names[1][index], "attn-k", turn=True))
        else:
            parts.append(text(x, top - 6, names[1][index], "attn-k", "middle"))
    if array.size > MOST_CELLS and not kinds:
        parts.append(
            f'<image x="{left:g}" y="{top:g}" width="{size * columns}" height="{size * rows}" '
            f'preserveAspectRatio="none" image-rendering="pixelated" href="{data_url(array, scope)}"/>'
        )
    else:
        parts += _cells(array, scope, left, top, size, unit, where, kinds)
    bottom = top + size * rows + 16
    has_gaps = bool(np.isnan(array).any())
    if kinds:
        legend, legend_width = swatches(kinds, [series(index, len(kinds)) for index in range(len(kinds))], left, bottom)
        said = ", ".join(f"{kind} {int((array == index).sum())}" for index, kind in enumerate(kinds))
    else:
        legend, legend_width = _legend(scope, unit, left, bottom, has_gaps=has_gaps)
        said = _summary(array, unit, where)
    full = max(left + max(size * columns, legend_width), 8 + width(visible(title)) * BOLD) + 12
    return Drawing(full, bottom + 34, f"{title}. {said}", [*parts, *legend])


def _cells(
    array: NDArray[np.float64],
    scope: Scale,
    left: float,
    top: float,
    size: int,
    unit: str,
    place: Place,
    kinds: Sequence[str],
) -> Iterator[str]:
    """A rectangle for each cell, with its place and number on hover."""
    gap = 1 if size > 8 else 0
    for (row, column), value in np.ndenumerate(array):
        share = scope.share(float(value))
        inset = 0.5 if math.isnan(share) else 0.0
        if math.isnan(share):
            paint = 'class="attn-n"'
        else:
            paint = f'fill="{series(int(value), len(kinds)) if kinds else web(share)}"'
        told = "no value" if math.isnan(value) else kinds[int(value)] if kinds else f"{number(float(value))} {unit}"
        yield (
            f'<rect x="{left + size * column + inset:g}" y="{top + size * row + inset:g}" '
            f'width="{size - gap - 2 * inset:g}" height="{size - gap - 2 * inset:g}" {paint}>'
            f"{hover(f'{place(row, column)}: {told}')}</rect>"
        )


def _legend(scope: Scale, unit: str, x: float, y: float, *, has_gaps: bool) -> tuple[list[str], float]:
    """The scale as a ramp with its two ends, and how wide it is."""
    if math.isnan(scope.low):
        return [text(x, y + 11, "no values", "attn-t")], 60
    steps, step = 40, 4
    low, high = number(scope.low), f"{number(scope.high)} {unit}"
    start = x + width(low) * SANS + 6
    parts = [text(x, y + 11, low, "attn-t")]
    # Each step overlaps the next, so that no seam shows where a pixel is shared.
    parts += [
        f'<rect x="{start + step * index:g}" y="{y:g}" width="{step if index == steps - 1 else step + 1}" height="13" '
        f'fill="{web(index / (steps - 1))}"/>'
        for index in range(steps)
    ]
    end = start + step * steps + 6
    parts.append(text(end, y + 11, high, "attn-t"))
    end += width(high) * SANS
    if has_gaps:
        parts.append(f'<rect x="{end + 14.5:g}" y="{y + 0.5:g}" width="12" height="12" class="attn-n"/>')
        parts.append(text(end + 32, y + 11, "no value", "attn-t"))
        end += 32 + 60
    return parts, end - x


def _summary(array: NDArray[np.float64], unit: str, place: Place) -> str:
    """The picture in words, for those who cannot see it."""
    finite = np.isfinite(array)
    if not finite.any():
        return "No values"
    ends = []
    for name, sign in (("Lowest", 1), ("highest", -1)):
        row, column = np.unravel_index(int(np.where(finite, array * sign, np.inf).argmin()), array.shape)
        ends.append(f"{name} {number(float(array[row, column]))} {unit} at {place(int(row), int(column))}")
    return "; ".join(ends)
