"""This file holds what every SVG is made of: paper, ink, texts and their widths, and several drawings on one sheet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attnstore.show.cell import visible, width
from attnstore.show.markup import Markup, escape

FONT = 11
COLUMN = 6.7  # the width of a character of the token font at its size, in pixels
SANS = 7.5  # the same for the other font, on the safe side
BOLD = 8
GAP = 16
# The picture brings its own paper: a notebook may be light where the system is dark, and the ink follows the system.
STYLE = (
    ".attn-p{fill:#ffffff}.attn-h{stroke:#ffffff;stroke-width:3px;paint-order:stroke}"
    ".attn-t{font:12px system-ui,sans-serif;fill:#1f2328}.attn-b{font-weight:bold}"
    ".attn-k{font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}"
    ".attn-n{fill:none;stroke:#9198a1}.attn-g{fill:none;stroke:#9198a1;stroke-opacity:.3}"
    ".attn-i{fill:none;stroke:#1f2328}.attn-l{stroke:#3b7dd8;fill:none}"
    "@media(prefers-color-scheme:dark){.attn-t,.attn-k{fill:#e6edf3}.attn-p{fill:#0d1117}.attn-h{stroke:#0d1117}"
    ".attn-i{stroke:#e6edf3}.attn-l{stroke:#7ab0ff}}"
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished part of a sheet: its size in pixels, its content in words for those who cannot see it, its marks."""

    wide: float
    high: float
    label: str
    parts: Sequence[str]


def svg(drawing: Drawing) -> Markup:
    """The drawing as a self-contained SVG."""
    wide, high = math.ceil(drawing.wide), math.ceil(drawing.high)
    body = "\n".join(drawing.parts)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'role="img" aria-label="{escape(drawing.label)}">\n<style>{STYLE}</style>\n'
        f'<rect class="attn-p" width="100%" height="100%"/>\n{body}\n</svg>\n'
    )


def sheet(drawings: Sequence[Drawing], widest: float) -> Drawing:
    """Several drawings in rows of equal columns, each as its own group; the rows are about `widest` wide at most."""
    # The last one may be wider, for a legend that speaks for all.
    column = max((drawing.wide for drawing in drawings[:-1]), default=0) + GAP
    per_row = max(1, int((widest + GAP) // column))
    parts: list[str] = []
    wide = y = 0.0
    for first in range(0, len(drawings), per_row):
        row = drawings[first : first + per_row]
        for index, drawing in enumerate(row):
            parts += [f'<g transform="translate({column * index:g} {y:g})">', *drawing.parts, "</g>"]
            wide = max(wide, column * index + drawing.wide)
        y += max(drawing.high for drawing in row) + GAP
    return Drawing(wide, y - GAP, " | ".join(drawing.label for drawing in drawings), parts)


def text(x: float, y: float, words: str, kind: str, anchor: str = "start", *, turn: bool = False) -> str:
    """A text with its baseline at y; `kind` names classes of STYLE, `turn` has it read upwards."""
    place = f'transform="translate({x:g} {y:g}) rotate(-90)"' if turn else f'x="{x:g}" y="{y:g}"'
    return f'<text {place} class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def hover(words: str) -> str:
    """What stands in a mark and shows when the pointer rests on it."""
    return f"<title>{escape(words)}</title>"


def longest(names: Sequence[str]) -> float:
    """The width in pixels of the longest label in the token font."""
    return max(map(width, names), default=0) * COLUMN


def swatches(names: Sequence[str], colours: Sequence[str], x: float, y: float) -> tuple[list[str], float]:
    """Small squares of colours with their names in one line, and how wide that is; y is their upper edge."""
    parts, at = [], x
    for name, colour in zip(names, colours, strict=True):
        parts.append(f'<rect x="{at:g}" y="{y:g}" width="12" height="12" fill="{colour}"/>')
        parts.append(text(at + 17, y + 11, name, "attn-t"))
        at += 17 + width(visible(name)) * SANS + 14
    return parts, at - x
