"""This file draws cells with names and bars as lines of text."""

import math
from collections.abc import Sequence

from attnstore.show import colour as colours
from attnstore.show.axis import extent
from attnstore.show.cell import clip, number, pad, visible, width
from attnstore.show.terminal import LABEL_COLUMNS, NO_VALUE, framed, grid_text, legend, stacked
from attnstore.store.figures.panels import Bar, Bars, Heat

COLUMNS = 40
EIGHTHS = " ▏▎▍▌▋▊▉█"
TEXTURES = "█▒▓░▚▞"
NAME_COLUMNS = 24
MOST_BARS = 60


def heat_text(panel: Heat, *, colour: bool) -> str:
    """The cells with names at the edges, those of columns read downwards; kinds stand as two letters or a number."""
    if panel.kinds:
        return _kinds_text(panel)
    if panel.axes == ("layer", "head"):
        return grid_text(panel.values, title=panel.title, colour=colour)
    rows = [clip(visible(name), LABEL_COLUMNS) for name in panel.rows]
    columns = [visible(name) for name in panel.columns]
    side, top = map(visible, panel.axes)

    def place(row: int, column: int) -> str:
        return f"{side} {rows[row]}, {top} {clip(columns[column], LABEL_COLUMNS)}"

    picture = framed(panel.values, rows, stacked(columns), side, top, colour)
    return "\n".join([visible(panel.title), *picture, *legend(panel.values, place, colour)])


def bars_text(panel: Bars, *, colour: bool) -> str:
    """A line for each bar: its name, the bar in eighths of a character with its baseline as │, and its number.

    Parts of a whole are told apart by texture, or by colour.
    """
    shown = panel.bars[:MOST_BARS]
    names = [clip(visible(bar.name), NAME_COLUMNS) for bar in shown]
    left = max(map(width, names), default=0)
    lines = [visible(panel.title)]
    if not panel.is_whole:
        high = extent([max(bar.lengths[0], bar.baseline) for bar in shown] + [0.0])[1] or 1.0
        lines += [f"{pad(name, left)} {_bar(bar, high)}" for name, bar in zip(names, shown, strict=True)]
        if panel.baseline:
            lines.append(f"{pad('', left)} │ marks {visible(panel.baseline)}")
    else:
        marks = [_mark(index, len(panel.parts), colour) for index in range(len(panel.parts))]
        lines += [f"{pad(name, left)} {_whole(bar, marks)}" for name, bar in zip(names, shown, strict=True)]
        lines.append("   ".join(f"{mark * 2} {visible(name)}" for mark, name in zip(marks, panel.parts, strict=True)))
    if len(panel.bars) > MOST_BARS:
        lines.append(f"… {len(panel.bars) - MOST_BARS} of {len(panel.bars)} left out")
    return "\n".join(lines if panel.bars else [*lines[:1], "no values"])


def _bar(bar: Bar, high: float) -> str:
    """The bar, filled to the width of all bars, and its number; negative values have no bar."""
    (value,) = bar.lengths
    if not math.isfinite(value):
        return f"{' ' * COLUMNS} {NO_VALUE}"
    eighths = round(min(max(value / high, 0.0), 1.0) * COLUMNS * 8)
    cells = list("█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else ""))
    cells += " " * (COLUMNS - len(cells))
    if math.isfinite(bar.baseline) and bar.baseline >= 0:
        cells[min(int(bar.baseline / high * COLUMNS), COLUMNS - 1)] = "│"
    return f"{''.join(cells)} {number(value)}  {visible(bar.note)}".rstrip()


def _whole(bar: Bar, marks: Sequence[str]) -> str:
    """The parts end to end; where each ends is rounded, so that the whole has its width."""
    done, total, line = 0, 0.0, ""
    for length, mark in zip(bar.lengths, marks, strict=True):
        total += length if math.isfinite(length) else 0.0
        upto = round(total * COLUMNS)
        line += mark * (upto - done)
        done = upto
    shares = " ".join(f"{length:.0%}" for length in bar.lengths if math.isfinite(length))
    return f"{line or ' ' * COLUMNS} {shares or NO_VALUE}"


def _mark(index: int, count: int, colour: bool) -> str:
    if not colour:
        return TEXTURES[index % len(TEXTURES)]
    shade = colours.series(index, count)
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return f"\x1b[38;2;{red};{green};{blue}m█\x1b[0m"


def _kinds_text(panel: Heat) -> str:
    """The cells as two letters of their kind where those differ, else as its number."""
    codes = [visible(kind)[:2] for kind in panel.kinds]
    if len(set(codes)) < len(codes) or any(width(code) > 2 for code in codes):
        codes = [str(index + 1) for index in range(len(codes))]
    rows = [visible(name) for name in panel.rows]
    left = max(map(width, [panel.axes[0], *rows]), default=0)
    heads = "".join(f" {pad(visible(name), 2, right=True)}" for name in panel.columns)
    lines = [visible(panel.title), f"{pad(panel.axes[0], left)}  {panel.axes[1]}", f"{' ' * left}{heads}"]
    for name, values in zip(rows, panel.values.tolist(), strict=True):
        cells = "".join(f" {NO_VALUE if math.isnan(v) else pad(codes[int(v)], 2, right=True)}" for v in values)
        lines.append(f"{pad(name, left, right=True)}{cells}")
    said = [f"{code} {visible(kind)}" for code, kind in zip(codes, panel.kinds, strict=True) if code != visible(kind)]
    return "\n".join([*lines, "  ".join([*said, f"{NO_VALUE} none"])])
