"""This file draws points and lines over two axes."""

import math

from attnstore.errors import BadInput
from attnstore.show.axis import Axis, extent, tick_text
from attnstore.show.cell import clip, number, visible, width
from attnstore.show.colour import GREY, series
from attnstore.show.svg import BOLD, COLUMN, SANS, Drawing, hover, text
from attnstore.store.figures.panels import Chart, Series

LARGE, SMALL, SQUARE = (560, 300), (250, 130), (460, 460)
LABEL_COLUMNS = 24
MOST_POINTS = 20_000
MOST_LEGEND = 24
MOST_LABELS = 300
DOT = 3.2
LINE = 16

Box = tuple[float, float, float, float]


def chart(panel: Chart) -> Drawing:
    """The chart with round numbers at its axes, a legend at its right, and values on hover.

    BadInput for more than 20,000 points. A label that would lie on another is left out; its hover is there.
    """
    n_points = sum(len(one.x) for one in panel.series)
    if n_points > MOST_POINTS:
        raise BadInput(
            f"drawing {panel.title!r}",
            f"{n_points:,} points",
            f"at most {MOST_POINTS:,}",
            "Choose a part of the answer",
        )
    wide, high = SQUARE if panel.is_map else SMALL if panel.is_small else LARGE
    known = [one for one in panel.series if any(map(_is_known, one.x, one.y))]
    x_ends = extent((x for one in known for x in one.x.tolist()), pad=0.04)
    y_ends = extent((y for one in known for y in one.y.tolist()), pad=0.05)
    if panel.is_map:
        x_ends, y_ends = _equal(x_ends, y_ends)
    y_axis = Axis(*y_ends, 38 + high, 38)
    y_ticks = [] if panel.is_map else y_axis.ticks(4 if panel.is_small else 6)
    digits = max((len(tick_text(tick)) for tick in y_ticks), default=0)
    # Small charts stand in columns, so their edges do not move with the numbers.
    left = max(10 + digits * SANS, 46) if panel.is_small else 34 + digits * SANS
    x_axis = Axis(*x_ends, left, left + wide)
    parts = [text(8, 18, panel.title, "attn-t attn-b"), *_frame(panel, x_axis, y_axis, y_ticks)]
    if not known:
        parts.append(text(left + wide / 2, 38 + high / 2, "no values", "attn-t", "middle"))
    for one in sorted(known, key=lambda one: one.is_line):
        parts += _marks(one, x_axis, y_axis, _colour(one, panel))
    parts += _labels(known, x_axis, y_axis)
    legend, legend_width = _legend(panel, left + wide + 16, 38) if panel.has_legend else ([], 0.0)
    right = left + wide + (16 + legend_width if legend else 14)
    tall = max(38 + high + (12 if panel.is_map else 30 if panel.is_small else 44), 38 + LINE * len(legend) / 2)
    full = max(right, 8 + width(visible(panel.title)) * BOLD) + 8
    return Drawing(full, tall, f"{panel.title}. {_summary(panel)}", [*parts, *legend])


def _frame(panel: Chart, x_axis: Axis, y_axis: Axis, y_ticks: list[float]) -> list[str]:
    """The edges of the plot, round numbers and their lines, and the names of the axes."""
    left, right, top, bottom = x_axis.start, x_axis.end, y_axis.end, y_axis.start
    parts = []
    for tick in y_ticks:
        y = y_axis.at(tick)
        parts.append(f'<path class="attn-g" d="M{left:g} {y:.1f}H{right:g}"/>')
        parts.append(text(left - 5, y + 4, tick_text(tick), "attn-t", "end"))
    line_places = [x for one in panel.series if one.is_line for x in one.x.tolist() if math.isfinite(x)]
    whole = bool(line_places) and all(x.is_integer() for x in line_places)
    for tick in [] if panel.is_map else x_axis.ticks(5 if panel.is_small else 12, whole=whole):
        x = x_axis.at(tick)
        parts.append(f'<path class="attn-g" d="M{x:.1f} {top:g}V{bottom:g}"/>')
        parts.append(text(x, bottom + 15, tick_text(tick), "attn-t", "middle"))
    parts.append(f'<rect class="attn-n" x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}"/>')
    if not panel.is_map and not panel.is_small:
        parts.append(text((left + right) / 2, bottom + 34, panel.axes[0], "attn-t", "middle"))
        parts.append(text(17, (top + bottom) / 2, panel.axes[1], "attn-t", "middle", turn=True))
    elif panel.is_small:
        parts.append(text(right, top - 5, f"{panel.axes[1]} by {panel.axes[0]}", "attn-t", "end"))
    return parts


def _marks(one: Series, x_axis: Axis, y_axis: Axis, colour: str) -> list[str]:
    """A dot for each point with a value, or one path that leaves gaps where there is none."""
    known = [(x, y, said) for x, y, said in zip(one.x.tolist(), one.y.tolist(), one.hovers, strict=True)]
    places = [(x_axis.at(x), y_axis.at(y), said) if _is_known(x, y) else None for x, y, said in known]
    dots = [
        f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{2.5 if one.is_line else DOT}" fill="{colour}" '
        f'fill-opacity="{0 if one.is_line else 0.85}">{hover(place[2])}</circle>'
        for place in places
        if place
    ]
    if not one.is_line:
        return dots
    steps = [
        f"{'L' if index and places[index - 1] else 'M'}{place[0]:.1f} {place[1]:.1f}"
        for index, place in enumerate(places)
        if place
    ]
    dash = ' stroke-dasharray="6 4"' if one.is_dashed else ""
    path = f'<path d="{"".join(steps)}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"{dash}/>'
    # A point between two gaps has no line, so its dot is drawn.
    alone = [
        dot.replace('fill-opacity="0"', 'fill-opacity="1"') if _is_alone(places, index) else dot
        for dot, index in zip(dots, [i for i, place in enumerate(places) if place], strict=True)
    ]
    return [path, *alone]


def _labels(known: list[Series], x_axis: Axis, y_axis: Axis) -> list[str]:
    """The labels of points, each at the side where it hides the fewest points; none hides another label."""
    points = [
        (x_axis.at(x), y_axis.at(y), label)
        for one in known
        for x, y, label in zip(one.x.tolist(), one.y.tolist(), one.labels or [""] * len(one.x), strict=True)
        if _is_known(x, y)
    ]
    dots = [(x - DOT, y - DOT, x + DOT, y + DOT) for x, y, _ in points]
    taken: list[Box] = []
    parts = []
    for px, py, label in [point for point in points if point[2]][:MOST_LABELS]:
        shown = clip(visible(label), LABEL_COLUMNS)
        wide = width(shown) * COLUMN
        sides = ((6.0, 4.0), (-6 - wide, 4.0), (-wide / 2, -7.0), (-wide / 2, 15.0))
        boxes = [(px + dx, py + dy - 9, px + dx + wide, py + dy + 2) for dx, dy in sides]
        boxes = [box for box in boxes if _n_hit(box, taken) == 0 and _is_inside(box, x_axis, y_axis)]
        # A label may hide one point, not a crowd.
        box = min(boxes, key=lambda box: _n_hit(box, dots), default=None)
        if box and _n_hit(box, dots) <= 1:
            taken.append(box)
            parts.append(text(box[0], box[3] - 2, shown, "attn-k attn-h"))
    return parts


def _legend(panel: Chart, x: float, y: float) -> tuple[list[str], float]:
    """The named series one below the other, and how wide that is; of very many, some."""
    named = [one for one in panel.series if one.name]
    if len(named) > MOST_LEGEND:
        keep = {round(index * (len(named) - 1) / (MOST_LEGEND - 1)) for index in range(MOST_LEGEND)}
        named = [one for index, one in enumerate(named) if index in keep]
    step = min(LINE, (SMALL[1] + 30) / max(len(named), 1)) if panel.is_small else LINE
    parts = []
    for index, one in enumerate(named):
        colour = _colour(one, panel)
        middle = y + step * index + 6
        dash = ' stroke-dasharray="6 4"' if one.is_dashed else ""
        mark = f'<path d="M{x:g} {middle:g}h18" stroke="{colour}" stroke-width="2" fill="none"{dash}/>'
        parts.append(mark if one.is_line else f'<circle cx="{x + 9:g}" cy="{middle:g}" r="4" fill="{colour}"/>')
        parts.append(text(x + 23, middle + 4, clip(visible(one.name), LABEL_COLUMNS), "attn-t"))
    return parts, 23 + max((min(width(visible(one.name)), LABEL_COLUMNS) for one in named), default=0) * SANS


def _colour(one: Series, panel: Chart) -> str:
    return GREY if one.colour is None else series(one.colour, panel.n_colours, is_ordered=panel.is_ordered)


def _summary(panel: Chart) -> str:
    """The chart in words: the highest point."""
    best = None
    for one in panel.series:
        for x, y, said in zip(one.x.tolist(), one.y.tolist(), one.hovers, strict=True):
            if _is_known(x, y) and (best is None or y > best[0]):
                best = (y, said)
    if best is None:
        return "No values"
    n_points = sum(len(one.x) for one in panel.series if not one.is_line)
    count = f"{n_points} points; " if n_points else ""
    return f"{count}highest {panel.axes[1]} {number(best[0])} at {best[1]}"


def _equal(x: tuple[float, float], y: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Two ranges of the same extent around the same middles, so that a unit is as long on both axes."""
    half = max(x[1] - x[0], y[1] - y[0]) / 2 * 1.06 or 1.0
    return tuple(((low + high) / 2 - half, (low + high) / 2 + half) for low, high in (x, y))  # type: ignore[return-value]


def _is_known(x: float, y: float) -> bool:
    return math.isfinite(x) and math.isfinite(y)


def _is_alone(places: list[tuple[float, float, str] | None], index: int) -> bool:
    return not any(0 <= near < len(places) and places[near] for near in (index - 1, index + 1))


def _n_hit(box: Box, others: list[Box]) -> int:
    """How many of the others the box overlaps."""
    return sum(box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3] for o in others)


def _is_inside(box: Box, x_axis: Axis, y_axis: Axis) -> bool:
    return x_axis.start <= box[0] and box[2] <= x_axis.end and y_axis.end <= box[1] and box[3] <= y_axis.start
