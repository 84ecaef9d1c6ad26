"""This file draws bars from left to right: values beside their baselines, and the shares of a whole."""

import math

from attnstore.show.axis import Axis, extent, tick_text
from attnstore.show.cell import clip, number, visible, width
from attnstore.show.colour import series
from attnstore.show.svg import BOLD, Drawing, hover, longest, swatches, text
from attnstore.store.figures.panels import Bar, Bars

WIDE = 420
STEP, THICK = 20, 14
TOP = 48
MOST_BARS = 100
LABEL_COLUMNS = 28
NUMBER = 62
MIN_TEXT = 34  # the narrowest part that has room for its share


def bars(panel: Bars) -> Drawing:
    """The bars in the order of the answer; the first 100, with a note of how many are left out."""
    shown = panel.bars[:MOST_BARS]
    is_stack = panel.is_whole
    names = [clip(visible(bar.name), LABEL_COLUMNS) for bar in shown]
    numbers = [] if is_stack else [value for bar in shown for value in (*bar.lengths, bar.baseline, *bar.interval)]
    ends = (0.0, 1.0) if is_stack else extent(numbers, pad=0.04, zero=True)
    left = 8 + longest(names) + 10
    axis = Axis(*ends, left, left + WIDE)
    bottom = TOP + STEP * max(len(shown), 1)
    parts = [text(8, 18, panel.title, "attn-t attn-b")]
    for tick in axis.ticks():
        x = axis.at(tick)
        parts.append(f'<path class="attn-g" d="M{x:.1f} {TOP - 4}V{bottom:g}"/>')
        parts.append(text(x, TOP - 8, tick_text(tick), "attn-t", "middle"))
    for index, (name, bar) in enumerate(zip(names, shown, strict=True)):
        y = TOP + STEP * index
        parts.append(text(left - 8, y + 12, name, "attn-k", "end"))
        parts += _parts(panel, bar, axis, y) if is_stack else _bar(panel, bar, axis, y)
    if not any(map(_is_known, shown)):
        parts.append(text(left + WIDE / 2, (TOP + bottom) / 2 + 4, "no values", "attn-t", "middle"))
    parts.append(f'<path class="attn-n" d="M{axis.at(0):.1f} {TOP - 4}V{bottom:g}"/>')
    legend, legend_width = _legend(panel, is_stack, left, bottom + 10)
    if len(panel.bars) > MOST_BARS:
        legend.append(text(left, bottom + 44, f"{len(panel.bars) - MOST_BARS} of {len(panel.bars)} left out", "attn-t"))
    notes = [clip(visible(bar.note), LABEL_COLUMNS) for bar in shown]
    right = left + WIDE + (8 if is_stack else 8 + NUMBER + longest(notes))
    full = max(right, left + legend_width, 8 + width(visible(panel.title)) * BOLD) + 8
    return Drawing(
        full, bottom + (56 if len(panel.bars) > MOST_BARS else 34), _summary(panel, is_stack), [*parts, *legend]
    )


def _bar(panel: Bars, bar: Bar, axis: Axis, y: float) -> list[str]:
    """One bar from 0, its interval as a thin line, its baseline as a mark across it, and its number at the right."""
    (value,) = bar.lengths
    said = f"{bar.name}: {panel.parts[0]} {number(value)}" if _is_known(bar) else f"{bar.name}: no value"
    if math.isfinite(bar.baseline):
        said += f", {panel.baseline} {number(bar.baseline)}"
    if all(map(math.isfinite, bar.interval)):
        said += f", interval {number(bar.interval[0])} to {number(bar.interval[1])}"
    parts = []
    if _is_known(bar):
        x, end = sorted((axis.at(0), axis.at(value)))
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 1:g}" width="{end - x:.1f}" height="{THICK}" fill="{series(0, 1)}">'
            f"{hover(said)}</rect>"
        )
    if all(map(math.isfinite, bar.interval)):
        low, high = map(axis.at, bar.interval)
        middle = y + 1 + THICK / 2
        path = f"M{low:.1f} {middle:g}H{high:.1f}M{low:.1f} {middle - 3:g}v6M{high:.1f} {middle - 3:g}v6"
        parts.append(f'<path class="attn-i" d="{path}">{hover(said)}</path>')
    if math.isfinite(bar.baseline):
        x = axis.at(bar.baseline)
        parts.append(
            f'<path d="M{x:.1f} {y - 1:g}v{THICK + 4}" stroke="{series(1, 2)}" stroke-width="3">{hover(said)}</path>'
        )
    parts.append(text(axis.end + 8, y + 12, number(bar.lengths[0]) if _is_known(bar) else "no value", "attn-t"))
    if bar.note:
        parts.append(text(axis.end + 8 + NUMBER, y + 12, clip(visible(bar.note), LABEL_COLUMNS), "attn-k"))
    return parts


def _parts(panel: Bars, bar: Bar, axis: Axis, y: float) -> list[str]:
    """The parts of a whole end to end, with the share in percent where there is room."""
    parts, start = [], 0.0
    for index, (name, length) in enumerate(zip(panel.parts, bar.lengths, strict=True)):
        if not length > 0:
            continue
        x, end = axis.at(start), axis.at(start + length)
        colour = series(index, len(panel.parts))
        parts.append(
            f'<rect x="{x:.1f}" y="{y + 1:g}" width="{end - x:.1f}" height="{THICK + 2}" fill="{colour}">'
            f"{hover(f'{bar.name}: {name} {length:.1%}')}</rect>"
        )
        if end - x >= MIN_TEXT:
            ink = "#ffffff" if _is_dark(colour) else "#1f2328"
            parts.append(
                f'<text x="{(x + end) / 2:.1f}" y="{y + 13:g}" font-size="11" font-family="system-ui,sans-serif" '
                f'fill="{ink}" text-anchor="middle" pointer-events="none">{length:.0%}</text>'
            )
        start += length
    return parts


def _legend(panel: Bars, is_stack: bool, x: float, y: float) -> tuple[list[str], float]:
    if is_stack:
        return swatches(panel.parts, [series(index, len(panel.parts)) for index in range(len(panel.parts))], x, y)
    if panel.baseline:
        return swatches([panel.parts[0], panel.baseline], [series(0, 2), series(1, 2)], x, y)
    return [], 0.0


def _summary(panel: Bars, is_stack: bool) -> str:
    """The bars in words: the longest, or the largest part over all bars."""
    known = [bar for bar in panel.bars if _is_known(bar)]
    if not known:
        return f"{panel.title}. No values"
    if is_stack:
        sums = [sum(bar.lengths[index] for bar in known) for index in range(len(panel.parts))]
        largest = max(range(len(sums)), key=sums.__getitem__)
        return (
            f"{panel.title}. {len(known)} bars; largest share {panel.parts[largest]} {sums[largest] / len(known):.1%}"
        )
    best = max(known, key=lambda bar: bar.lengths[0])
    return f"{panel.title}. {len(known)} bars; longest {best.name} {number(best.lengths[0])}"


def _is_known(bar: Bar) -> bool:
    return any(map(math.isfinite, bar.lengths))


def _is_dark(colour: str) -> bool:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140
