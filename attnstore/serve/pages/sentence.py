"""This file draws one map among the words of an example as lines or as a matrix, in which every word is a link.

Its classes are those of static/reading.css; a weight is an opacity or a fill, which are attributes and no style.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.show.bitmap import data_url
from attnstore.show.cell import clip, number, visible
from attnstore.show.colour import Scale, scale, web
from attnstore.show.markup import Markup, escape
from attnstore.show.svg import COLUMN, longest

FAINT = 0.005
MOST_LINES = 3000
MOST_HOVERS = 6400
LABEL_COLUMNS = 18
STEP = 20
BETWEEN = 190
WIDEST = 640
PALEST = 0.18

Weights = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Unit:
    """A token or word along an axis: its label, its first token (None for a word without one), its word (None for a
    token without one), and the address at which it is in focus."""

    label: str
    token: int | None
    word: int | None
    href: str = ""

    @property
    def short(self) -> str:
        """The label as a drawing has room for it."""
        return clip(visible(self.label), LABEL_COLUMNS)


@dataclass(frozen=True, slots=True)
class Focus:
    """Which row and which column are drawn strong; None for neither."""

    row: int | None = None
    column: int | None = None

    def role(self, row: int, column: int) -> str:
        """out: from the word in focus; in: to it; rest: another line; empty where nothing is in focus."""
        if self.row is None and self.column is None:
            return ""
        return "out" if row == self.row else "in" if column == self.column else "rest"


def drawn(weights: Weights) -> NDArray[np.intp]:
    """The cells [line, (row, column)] that are drawn as lines, faint ones first: from 0.005, and the 3,000 largest."""
    cells = np.argwhere(np.nan_to_num(weights) >= FAINT)
    order = np.argsort(weights[tuple(cells.T)], kind="stable")
    return cells[order[-MOST_LINES:]]


def lines(weights: Weights, queries: Sequence[Unit], keys: Sequence[Unit], focus: Focus) -> Markup:
    """Lines from the queries (left) to the keys (right), as opaque as the weight [query, key] (Clark et al. 2019)."""
    left = max(longest([unit.short for unit in queries]) * 1.2, 80) + 14
    right = left + BETWEEN
    wide, top = right + longest([unit.short for unit in keys]) * 1.2 + 14, 36
    high = top + STEP * max(len(queries), len(keys), 1)
    parts = [
        f'<text class="axis" x="{left:g}" y="14" text-anchor="end">query (from)</text>',
        f'<text class="axis" x="{right:g}" y="14">key (to)</text>',
    ]
    found = [(row, column, focus.role(row, column)) for row, column in drawn(weights).tolist()]
    # Strong lines lie above the others.
    for row, column, role in sorted(found, key=lambda line: line[2] in ("out", "in")):
        weight = float(weights[row, column])
        opacity = max(min(weight, 1), PALEST if role in ("out", "in") else 0.04)
        y = (top + STEP * row - 4, top + STEP * column - 4)
        said = escape(f"{queries[row].label} → {keys[column].label}: {number(weight)}")
        parts.append(
            f'<path class="line {role}" data-query="{row}" data-key="{column}" '
            f'd="M{left + 5:g} {y[0]}L{right - 5:g} {y[1]}" stroke-opacity="{opacity:.3f}" '
            f'stroke-width="{1 + 2.5 * min(weight, 1):.1f}"><title>{said}</title></path>'
        )
    for index, unit in enumerate(queries):
        parts.append(_word(unit, left, top + STEP * index, "end", "query", index, chosen=index == focus.row))
    for index, unit in enumerate(keys):
        parts.append(_word(unit, right, top + STEP * index, "start", "key", index, chosen=index == focus.column))
    label = f"Attention from {len(queries)} queries to {len(keys)} keys as lines"
    return _svg("lines", wide, high, label, parts)


def matrix(weights: Weights, queries: Sequence[Unit], keys: Sequence[Unit], focus: Focus) -> Markup:
    """A cell for each weight [query, key], from 0 to the largest; above 6,400 cells an image without hovers."""
    rows, columns = weights.shape
    size = int(min(22, max(2, WIDEST // max(rows, columns, 1))))
    left = max(longest([unit.short for unit in queries]) * 1.2, 80) + 14
    top = 26 + longest([unit.short for unit in keys]) * 1.2
    found = scale(weights)
    scope = Scale(0.0, max(found.high, 1e-9)) if math.isfinite(found.high) else found
    every = math.ceil(12 / size)
    parts = [f'<text class="axis" x="4" y="14">query ↓ key →, 0 to {number(scope.high)}</text>']
    for index in range(0, rows, every):
        y = top + size * index + size / 2 + 4
        parts.append(_word(queries[index], left - 6, y, "end", "query", index, chosen=index == focus.row))
    for index in range(0, columns, every):
        x = left + size * index + size / 2 + 4
        parts.append(_word(keys[index], x, top - 6, "turn", "key", index, chosen=index == focus.column))
    if weights.size > MOST_HOVERS:
        parts.append(
            f'<image class="pixels" x="{left:g}" y="{top:g}" width="{size * columns}" height="{size * rows}" '
            f'preserveAspectRatio="none" href="{data_url(weights, scope)}"/>'
        )
    else:
        parts += _cells(weights, scope, left, top, size, queries, keys)
    if focus.row is not None:
        parts.append(_frame(left, top + size * focus.row, size * columns, size, "out"))
    if focus.column is not None:
        parts.append(_frame(left + size * focus.column, top, size, size * rows, "in"))
    label = f"Attention from {rows} queries to {columns} keys as a matrix"
    return _svg("matrix", max(left + size * columns + 8, 40 * COLUMN), top + size * rows + 8, label, parts)


def _cells(
    weights: Weights, scope: Scale, left: float, top: float, size: int, queries: Sequence[Unit], keys: Sequence[Unit]
) -> Iterator[str]:
    """A rectangle for each cell, with its words and number on hover; a frame where no weight was kept."""
    for (row, column), weight in np.ndenumerate(weights):
        share = scope.share(float(weight))
        known = not math.isnan(share)
        paint = f'fill="{web(share)}"' if known else 'class="none"'
        said = escape(f"{queries[row].label} → {keys[column].label}: {number(float(weight)) if known else 'not kept'}")
        yield (
            f'<rect x="{left + size * column:g}" y="{top + size * row:g}" width="{size - 1}" height="{size - 1}" '
            f'{paint} data-query="{row}" data-key="{column}"><title>{said}</title></rect>'
        )


def _word(unit: Unit, x: float, y: float, anchor: str, axis: str, index: int, *, chosen: bool) -> str:
    """A word as a link to itself in focus; `turn` has it read upwards."""
    place = f'transform="translate({x:g} {y:g}) rotate(-90)"' if anchor == "turn" else f'x="{x:g}" y="{y:g}"'
    current = ' aria-current="true"' if chosen else ""
    side = "end" if anchor == "end" else "start"
    return (
        f'<a href="{escape(unit.href)}" class="unit" data-{axis}="{index}"{current}>'
        f'<text {place} text-anchor="{side}">{escape(unit.short) or "␣"}</text><title>{escape(unit.label)}</title></a>'
    )


def _frame(x: float, y: float, wide: float, high: float, role: str) -> str:
    return f'<rect class="frame {role}" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}"/>'


def _svg(view: str, wide: float, high: float, label: str, parts: Sequence[str]) -> Markup:
    """A drawing that takes the colours of the page; it holds links, so that it is a group and not an image."""
    size = f'width="{math.ceil(wide)}" height="{math.ceil(high)}" viewBox="0 0 {math.ceil(wide)} {math.ceil(high)}"'
    body = "\n".join(parts)
    return Markup(
        f'<svg class="sentence {view}" {size} role="group" aria-label="{escape(label)}" data-sentence>\n{body}\n</svg>'
    )
