"""This file makes charts: values over layers, heads as points of a plane, and profiles over an offset."""

import numpy as np
from numpy.typing import NDArray

from attnstore.store.figures.panels import Chart, Series
from attnstore.store.figures.rows import Rows

DODGE = 0.14
PEAKS = 3
FOUND = "{:.4g}"


def layers(rows: Rows, title: str) -> list[Chart]:
    """A point for each head at its layer and the layer means as a line, a colour for each value of `by`.

    The means of the column `line` are dashed: what to compare with. The picture is that of Clark et al. 2019,
    figure 2. Other text columns that set rows apart give panels of their own.
    """
    value, names = rows.name("value"), rows.distinct("by")
    keys = [role for role in ("layer", "head", "by") if rows.has(role)]
    panels = []
    for name, part in rows.parts("", keys):
        series: list[Series] = []
        for colour, kind in enumerate(names or [None]):
            chosen = part.where("by", kind) if names else part
            layer, numbers = chosen.numbers("layer"), chosen.numbers("value")
            shift = (colour - (max(len(names), 1) - 1) / 2) * min(DODGE, 0.6 / max(len(names), 1))
            said = f"{kind} " if names else ""
            hovers = _hovers(chosen, numbers, said)
            series.append(Series(layer + shift, numbers, hovers, colour))
            legend = str(kind) if names else "mean of the layer"
            series.append(_means(layer, numbers, f"mean {said}", colour, legend, is_dashed=False))
        if rows.has("line"):
            line = _means(part.numbers("layer"), part.numbers("line"), "", len(names) or 1, rows.name("line"))
            series.append(line)
        colours = (len(names) or 1) + rows.has("line")
        suffix = f", {name}" if name else ""
        panels.append(Chart(f"{title}: {value} by layer{suffix}", (rows.name("layer"), value), series, colours))
    return panels


def scatter(rows: Rows, title: str) -> list[Chart]:
    """A point for each row, coloured by `by` and named by `label`, as Clark et al. 2019, figure 6.

    Columns named x and y are coordinates: both axes have the same unit.
    """
    names: list[object] = [*rows.distinct("by")] if rows.has("by") else []
    axes = rows.name("x"), rows.name("y")
    groups = [(str(name), rows.where("by", name)) for name in names]
    # Rows without a value of `by` come first and lie below the others.
    groups = [("", rows.where("by", None) if names else rows), *groups]
    series = []
    for colour, (name, part) in enumerate(groups):
        x, y, labels = part.numbers("x"), part.numbers("y"), part.texts("label")
        hovers = [
            ", ".join(filter(None, (label, place, name and f"{rows.name('by')} {name}")))
            + f": {FOUND.format(left)}, {FOUND.format(right)}"
            for label, place, left, right in zip(labels, part.places(), x, y, strict=True)
        ]
        if len(part):
            series.append(Series(x, y, hovers, (colour - 1 if colour else None) if names else 0, name, labels))
    is_ordered = bool(names) and not rows.is_text("by")
    said = f", by {rows.name('by')}" if names else ""
    is_map = {axis.lower() for axis in axes} == {"x", "y"}
    return [Chart(f"{title}: {axes[0]} and {axes[1]}{said}", axes, series, max(len(names), 1), is_ordered, is_map)]


def profile(rows: Rows, title: str) -> list[Chart]:
    """A line over `at` for each head, a panel for each value of `by`; the highest lines are named at their peak."""
    axes = rows.name("at"), rows.name("value")
    heads = rows.distinct("head")
    panels = []
    parts = rows.parts("by", [role for role in ("at", "head") if rows.has(role)])
    for index, (name, part) in enumerate(parts):
        series: list[Series] = []
        for colour, head in enumerate(heads or [None]):
            chosen = part.where("head", head) if heads else part
            at, means = _averaged(chosen.numbers("at"), chosen.numbers("value"))
            if np.isfinite(means).any():
                said = f"{rows.name('head')} {head}" if heads else name
                hovers = [f"{said}, {axes[0]} {x:g}: {FOUND.format(y)}" for x, y in zip(at, means, strict=True)]
                series.append(Series(at, means, hovers, colour, said if heads else "", is_line=True))
        # The colours mean the same in all panels, so the last one's legend speaks for them.
        is_last = index == len(parts) - 1
        named = f"{title}: {name or axes[1]}" if len(parts) == 1 else name
        count = max(len(heads), 1)
        panels.append(Chart(named, axes, _peaks(series), count, True, is_small=len(parts) > 1, has_legend=is_last))
    return panels


def _hovers(rows: Rows, numbers: NDArray[np.float64], said: str) -> list[str]:
    return [f"{place}: {said}{FOUND.format(number)}" for place, number in zip(rows.places(), numbers, strict=True)]


def _means(
    layer: NDArray[np.float64], numbers: NDArray[np.float64], said: str, colour: int, name: str, is_dashed: bool = True
) -> Series:
    """The mean over each layer as a line."""
    at, means = _averaged(layer, numbers)
    hovers = [f"layer {x:g}: {said}{FOUND.format(y)}" for x, y in zip(at, means, strict=True)]
    return Series(at, means, hovers, colour, name, is_line=True, is_dashed=is_dashed)


def _averaged(at: NDArray[np.float64], numbers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each place once, in order, with the mean of the finite numbers there; NaN where there is none."""
    places = np.unique(at[np.isfinite(at)])
    found = [numbers[(at == place) & np.isfinite(numbers)] for place in places]
    return places, np.array([part.mean() if part.size else np.nan for part in found], dtype=np.float64)


def _peaks(series: list[Series]) -> list[Series]:
    """The series, where the few that reach highest bear their name at the peak."""
    highest = sorted(series, key=lambda one: -np.nanmax(one.y))[:PEAKS]
    named = []
    for one in series:
        peak = int(np.nanargmax(one.y))
        label = [one.name if one in highest and index == peak else "" for index in range(len(one.y))]
        named.append(Series(one.x, one.y, one.hovers, one.colour, one.name, label, is_line=True))
    return named
