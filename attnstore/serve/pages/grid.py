"""This file paints layers x heads as SVG whose cells are links, with a scale in numbers and the same as text."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import markupsafe
import numpy as np

from attnstore.serve.pages.render import drawn
from attnstore.show.cell import number, visible
from attnstore.show.colour import ANCHORS, Scale, rgb, scale, series
from attnstore.show.markup import Markup, escape
from attnstore.store.figures.panels import Heat

WIDE = 16
"""Heads above which a grid scrolls instead of shrinking."""

MOST_CELLS = 20_000
_LEFT, _TOP = 36, 24

Address = Callable[[int, int], str]
Tint = Callable[[float], tuple[int, int, int]]
"""From a share (0-1) of the scale to red, green, blue (0-255)."""

LESS, NEITHER, MORE = (0xB3, 0x58, 0x06), (0xF2, 0xF0, 0xEE), (0x2F, 0x5D, 0xA8)
"""The ends and the middle of the scale of differences: orange and blue, which colour-blind readers tell apart."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A painted grid: its drawing, and `rows` of texts [layer][head] for those who do not see it."""

    title: str
    svg: markupsafe.Markup
    heads: range
    rows: Sequence[tuple[int, Sequence[str]]]
    is_wide: bool


def paint(
    panel: Heat,
    title: str,
    address: Address,
    best: tuple[int, int] | None = None,
    *,
    small: bool = False,
    diverging: bool = False,
) -> Grid:
    """Values [layer, head] as coloured cells, each a link to what `address` names; `best` gets a ring.

    `small` is for one of several side by side, without numbers in the cells. `diverging` is for differences: two
    colours that grow stronger as far below 0 as above, nothing at 0.
    """
    layers, heads = panel.values.shape
    scope = Scale(*panel.ends) if panel.ends else scale(panel.values)
    if diverging:
        far = max(abs(scope.low), abs(scope.high)) or 1.0  # all equal: 0 is still in the middle
        scope = Scale(-far, far)
    tint = _two_hues if diverging else rgb
    wide, high = (27, 22) if small or heads > WIDE else (46, 30)
    parts = [_name(_LEFT + heads * wide / 2, 9, "head", "middle")]
    step = 1 if wide > 20 else 2
    parts += [_name(_LEFT + (head + 0.5) * wide, _TOP - 1, str(head), "middle") for head in range(0, heads, step)]
    for layer in range(layers):
        parts.append(_name(_LEFT - 7, _TOP + 4 + (layer + 0.5) * high + 4, str(layer), "end"))
        for head in range(heads):
            x, y = _LEFT + head * wide, _TOP + 4 + layer * high
            box = (x, y, wide - 2, high - 2)
            parts.append(_cell(panel, scope, tint, layer, head, box, address(layer, head)))
    if best is not None:
        x, y = _LEFT + best[1] * wide, _TOP + 4 + best[0] * high
        parts.append(f'<rect class="grid-best" x="{x - 2}" y="{y - 2}" width="{wide + 2}" height="{high + 2}" rx="4"/>')
        parts.append(f'<rect class="grid-halo" x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}" rx="2.5"/>')
    parts.append(
        f'<text class="grid-name" transform="translate(11 {_TOP + 4 + layers * high / 2:g}) rotate(-90)" '
        'text-anchor="middle">layer</text>'
    )
    bottom = _TOP + 4 + layers * high + 12
    legend, right = _kinds(panel.kinds, bottom) if panel.kinds else _scale(scope, tint, panel.unit, bottom)
    full = max(_LEFT + heads * wide + 4, right)
    label = escape(f"{title}: {layers} layers x {heads} heads. {_said(panel)}")
    body = "\n".join([*parts, *legend])
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full:g}" height="{bottom + 34}" '
        f'viewBox="0 0 {full:g} {bottom + 34}" role="group" aria-label="{label}">\n{body}\n</svg>'
    )
    texts = [(layer, [_text(panel, float(value)) for value in panel.values[layer]]) for layer in range(layers)]
    return Grid(title, drawn(Markup(svg)), range(heads), texts, heads > WIDE)


def _cell(
    panel: Heat,
    scope: Scale,
    tint: Tint,
    layer: int,
    head: int,
    box: tuple[float, float, float, float],
    address: str,
) -> str:
    """One cell: a link, its colour, its place and value on hover, and its number where there is room."""
    value = float(panel.values[layer, head])
    x, y, wide, high = box
    said = escape(f"layer {layer}, head {head}: {_text(panel, value)}")
    if math.isnan(value):
        colour, paint = (255, 255, 255), 'class="grid-none"'
    elif panel.kinds:
        fill = series(int(value), len(panel.kinds))
        colour, paint = _parts(fill), f'fill="{fill}"'
    else:
        colour = tint(scope.share(value))
        paint = f'fill="{_web(colour)}"'
    ground = "on-dark" if _luminance(colour) < 0.18 else "on-light"
    inside = ""
    if wide > 40 and not panel.kinds and not math.isnan(value):
        short = escape(_short(value, scope))
        inside = f'<text class="grid-value {ground}" x="{x + wide / 2:g}" y="{y + high / 2 + 4:g}">{short}</text>'
    return (
        f'<a href="{escape(address)}" aria-label="{said}"><title>{said}</title>'
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="3" {paint}/>{inside}</a>'
    )


def _scale(scope: Scale, tint: Tint, unit: str, top: float) -> tuple[list[str], float]:
    """The scale from its lowest to its highest value, with three numbers, and where it ends."""
    if math.isnan(scope.low):
        return [_name(_LEFT, top + 12, "no values")], _LEFT + 80
    wide = 16
    count = len(ANCHORS)
    fills = [_web(tint(index / (count - 1))) for index in range(count)]
    parts = [
        f'<rect x="{_LEFT + index * wide}" y="{top}" width="{wide}" height="10" fill="{fill}"/>'
        for index, fill in enumerate(fills)
    ]
    middle = scope.low / 2 + scope.high / 2
    for place, value, anchor in ((0.0, scope.low, "start"), (0.5, middle, "middle"), (1.0, scope.high, "end")):
        parts.append(_name(_LEFT + place * count * wide, top + 24, number(value), anchor))
    parts.append(_name(_LEFT + count * wide + 10, top + 10, unit))
    return parts, _LEFT + count * wide + 14 + 7.5 * len(unit)


def _kinds(kinds: Sequence[str], top: float) -> tuple[list[str], float]:
    """A swatch and a name for each kind, and where they end."""
    parts: list[str] = []
    x = float(_LEFT)
    for index, name in enumerate(kinds):
        words = visible(name)[:40]
        parts.append(f'<rect x="{x:g}" y="{top}" width="12" height="12" rx="2" fill="{series(index, len(kinds))}"/>')
        parts.append(_name(x + 17, top + 11, words))
        x += 30 + 7.5 * len(words)
    return parts, x


def _said(panel: Heat) -> str:
    """The grid in one sentence."""
    finite = np.isfinite(panel.values)
    if panel.kinds:
        return ", ".join(f"{kind} {int((panel.values == index).sum())}" for index, kind in enumerate(panel.kinds))
    if not finite.any():
        return "No values."
    ends = [np.unravel_index(find(panel.values), panel.values.shape) for find in (np.nanargmin, np.nanargmax)]
    words = [f"{number(float(panel.values[at]))} at layer {at[0]}, head {at[1]}" for at in ends]
    return f"Lowest {words[0]}; highest {words[1]}."


def _text(panel: Heat, value: float) -> str:
    if math.isnan(value):
        return "no value"
    return panel.kinds[int(value)] if panel.kinds else number(value)


def _short(value: float, scope: Scale) -> str:
    """The value in at most five characters or so, as precise as the scale is fine."""
    largest = max(abs(scope.low), abs(scope.high))
    if largest >= 10_000 or 0 < largest < 0.01:
        return f"{value:.0e}"
    return f"{value:.{0 if largest >= 1000 else 1 if largest >= 10 else 2}f}"


def _name(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text class="grid-name" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def _two_hues(share: float) -> tuple[int, int, int]:
    """The colour of a difference: neutral at 0.5, which is 0, and stronger towards either end."""
    end, far = (MORE, 2 * share - 1) if share > 0.5 else (LESS, 1 - 2 * share)
    red, green, blue = (round(a + (b - a) * far) for a, b in zip(NEITHER, end, strict=True))
    return red, green, blue


def _web(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: tuple[int, int, int]) -> float:
    """The relative luminance (0-1) of a colour as WCAG defines it; white text reads well below 0.18, black above."""
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
