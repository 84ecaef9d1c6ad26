"""This file draws layers x heads, single maps and lines between tokens as self-contained SVG."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnstore.errors import BadInput
from attnstore.show.bitmap import data_url
from attnstore.show.cell import clip, number, visible, width
from attnstore.show.colour import Scale, matrix, scale, web
from attnstore.show.markup import Markup, escape

CELL = 22
FONT = 11
COLUMN = 6.7  # the width of a character of the token font at its size, in pixels
SANS = 7.5  # the same for the other font, on the safe side
LABEL_COLUMNS = 24
WIDEST = 1100
MOST_CELLS = 16_384
MOST_LINES_TOKENS = 256
FAINT = 0.005
# The picture brings its own paper: a notebook may be light where the system is dark, and the ink follows the system.
STYLE = (
    ".attn-p{fill:#ffffff}"
    ".attn-t{font:12px system-ui,sans-serif;fill:#1f2328}.attn-b{font-weight:bold}"
    ".attn-k{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}"
    ".attn-n{fill:none;stroke:#9198a1}.attn-l{stroke:#3b7dd8;fill:none}"
    "@media(prefers-color-scheme:dark){.attn-t,.attn-k{fill:#e6edf3}.attn-p{fill:#0d1117}.attn-l{stroke:#7ab0ff}}"
)

Place = Callable[[int, int], str]


def grid_svg(values: ArrayLike, *, title: str, unit: str) -> Markup:
    """A picture of values [layer, head], a coloured cell each with its number on hover; axes are zero-based.

    The scale below goes from the lowest to the highest finite value; NaN is an empty frame. Raises BadInput
    unless there are two dimensions.
    """
    array = matrix(values, f"drawing {title!r}")
    names = [[str(index) for index in range(side)] for side in array.shape]
    return _heatmap(array, title, unit, names, ("layer", "head"), lambda row, column: f"layer {row}, head {column}")


def map_svg(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str], *, title: str) -> Markup:
    """A picture of one map [query, key] with the tokens at its edges; above 16,384 cells an image without hovers.

    Raises BadInput when the shape is not that of the labels.
    """
    array = matrix(weights, f"drawing {title!r}", (len(queries), len(keys)))
    names = [[clip(visible(token), LABEL_COLUMNS) for token in side] for side in (queries, keys)]

    def place(row: int, column: int) -> str:
        return f"query {row} {queries[row]}, key {column} {keys[column]}"

    return _heatmap(array, title, "weight", names, ("query", "key"), place)


def lines_svg(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str]) -> Markup:
    """One map [query, key] as lines from the queries (left) to the keys (right), as opaque as the weight (0-1).

    Weights below 0.005 and NaN are not drawn. The drawing is that of Clark et al. 2019, figure 1. Raises
    BadInput when the shape is not that of the labels, or for more than 256 tokens a side.
    """
    doing = "drawing lines between tokens"
    array = matrix(weights, doing, (len(queries), len(keys)))
    if max(array.shape) > MOST_LINES_TOKENS:
        raise BadInput(
            doing,
            f"{max(array.shape)} tokens on a side",
            f"at most {MOST_LINES_TOKENS}",
            "Draw it as a heat map, or choose a part of it",
        )
    names = [[clip(visible(token), LABEL_COLUMNS) for token in side] for side in (queries, keys)]
    step, top = 18, 30
    left = _longest(names[0]) + 8
    right = left + 170
    parts = [_text(left, 14, "query", "attn-t", "end"), _text(right, 14, "key", "attn-t")]
    for x, side, anchor in ((left, names[0], "end"), (right, names[1], "start")):
        parts += [_text(x, top + step * index + 4, name, "attn-k", anchor) for index, name in enumerate(side)]
    for row, column in np.argwhere(array >= FAINT).tolist():
        weight = float(array[row, column])
        hover = escape(f"{queries[row]} → {keys[column]}: {number(weight)}")
        parts.append(
            f'<path class="attn-l" d="M{left + 6:g} {top + step * row}L{right - 6:g} {top + step * column}" '
            f'stroke-width="2" stroke-opacity="{min(weight, 1.0):.3f}"><title>{hover}</title></path>'
        )
    height = top + step * max(*array.shape, 1)
    label = f"Attention from {len(queries)} queries to {len(keys)} keys"
    return _svg(right + _longest(names[1]) + 8, height, label, parts)


def _heatmap(
    array: NDArray[np.float64], title: str, unit: str, names: list[list[str]], axes: tuple[str, str], place: Place
) -> Markup:
    """The picture that grids and maps share; `names` are the finished labels of rows and columns."""
    scope = scale(array)
    size = max(1, min(CELL, WIDEST // max(*array.shape, 1)))
    has_long_names = max(map(len, names[1]), default=0) > 2
    left = max(_longest(names[0]), (len(axes[0]) + 2) * SANS) + 14
    top = 44 + (_longest(names[1]) if has_long_names else 14)
    rows, columns = array.shape
    parts = [_text(8, 18, title, "attn-t attn-b")]
    parts.append(_text(left, 38, f"{axes[1]} →", "attn-t"))
    parts.append(_text(left - 8, top - 6, f"{axes[0]} ↓", "attn-t", "end"))
    # Labels that would overlap are left out, every so many; those on hover are complete.
    line = FONT + 1
    for index in range(0, rows, math.ceil(line / size)):
        parts.append(_text(left - 6, top + size * index + size / 2 + 4, names[0][index], "attn-k", "end"))
    space = line if has_long_names else _longest(names[1]) + 4
    for index in range(0, columns, math.ceil(space / size)):
        x = left + size * index + size / 2
        if has_long_names:
            parts.append(_text(x + 4, top - 6, names[1][index], "attn-k", turn=True))
        else:
            parts.append(_text(x, top - 6, names[1][index], "attn-k", "middle"))
    if array.size > MOST_CELLS:
        parts.append(
            f'<image x="{left:g}" y="{top:g}" width="{size * columns}" height="{size * rows}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" href="{data_url(array, scope)}"/>'
        )
    else:
        parts += _cells(array, scope, left, top, size, unit, place)
    bottom = top + size * rows + 16
    legend, legend_width = _legend(scope, unit, left, bottom, has_gaps=bool(np.isnan(array).any()))
    full = max(left + max(size * columns, legend_width), 8 + width(visible(title)) * 8) + 12
    return _svg(full, bottom + 34, f"{title}. {_summary(array, unit, place)}", [*parts, *legend])


def _cells(
    array: NDArray[np.float64], scope: Scale, left: float, top: float, size: int, unit: str, place: Place
) -> Iterator[str]:
    """A rectangle for each cell, with its place and number on hover."""
    gap = 1 if size > 8 else 0
    for (row, column), value in np.ndenumerate(array):
        share = scope.share(float(value))
        inset = 0.5 if math.isnan(share) else 0.0
        paint = 'class="attn-n"' if math.isnan(share) else f'fill="{web(share)}"'
        told = "no value" if math.isnan(value) else f"{number(float(value))} {unit}"
        yield (
            f'<rect x="{left + size * column + inset:g}" y="{top + size * row + inset:g}" '
            f'width="{size - gap - 2 * inset:g}" height="{size - gap - 2 * inset:g}" {paint}>'
            f"<title>{escape(f'{place(row, column)}: {told}')}</title></rect>"
        )


def _legend(scope: Scale, unit: str, x: float, y: float, *, has_gaps: bool) -> tuple[list[str], float]:
    """The scale as a ramp with its two ends, and how wide it is."""
    if math.isnan(scope.low):
        return [_text(x, y + 11, "no values", "attn-t")], 60
    steps, step = 40, 4
    low, high = number(scope.low), f"{number(scope.high)} {unit}"
    start = x + width(low) * SANS + 6
    parts = [_text(x, y + 11, low, "attn-t")]
    # Each step overlaps the next, so that no seam shows where a pixel is shared.
    parts += [
        f'<rect x="{start + step * index:g}" y="{y:g}" width="{step if index == steps - 1 else step + 1}" height="13" '
        f'fill="{web(index / (steps - 1))}"/>'
        for index in range(steps)
    ]
    end = start + step * steps + 6
    parts.append(_text(end, y + 11, high, "attn-t"))
    end += width(high) * SANS
    if has_gaps:
        parts.append(f'<rect x="{end + 14.5:g}" y="{y + 0.5:g}" width="12" height="12" class="attn-n"/>')
        parts.append(_text(end + 32, y + 11, "no value", "attn-t"))
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


def _svg(wide: float, high: float, label: str, parts: list[str]) -> Markup:
    wide, high = math.ceil(wide), math.ceil(high)
    body = "\n".join(parts)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'role="img" aria-label="{escape(label)}">\n<style>{STYLE}</style>\n'
        f'<rect class="attn-p" width="100%" height="100%"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start", *, turn: bool = False) -> str:
    place = f'transform="translate({x:g} {y:g}) rotate(-90)"' if turn else f'x="{x:g}" y="{y:g}"'
    return f'<text {place} class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _longest(names: list[str]) -> float:
    """The width in pixels of the longest label."""
    return max(map(width, names), default=0) * COLUMN
