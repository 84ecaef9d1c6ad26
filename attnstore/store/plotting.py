"""This file draws the panels of a picture on matplotlib axes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnstore.errors import BadInput
from attnstore.store.figures.panels import Bars, Chart, Heat, Panel, Sentences
from attnstore.store.optional import optional

COLUMNS = 3


def draw(panels: Sequence[Panel], axes: Any = None) -> Any:
    """The axes with the panel, or an array of axes with a panel each; MissingExtra without matplotlib.

    BadInput for several panels on the axes of a caller, and for none.
    """
    plt = optional("matplotlib", "drawing a result", module="matplotlib.pyplot")
    if len(panels) != 1:
        shown = "; ".join(panel.title for panel in panels[:5])
        if axes is not None or not panels:
            raise BadInput(
                "drawing a result", f"{len(panels)} pictures ({shown})", "one", "Choose a part of the answer"
            )
        columns = min(COLUMNS, len(panels))
        rows = math.ceil(len(panels) / columns)
        _, found = plt.subplots(rows, columns, squeeze=False, figsize=(4.5 * columns, 3.5 * rows), layout="constrained")
        for panel, one in zip(panels, found.flat, strict=False):
            _panel(panel, one)
        for one in found.flat[len(panels) :]:
            one.set_axis_off()
        return found
    one = plt.subplots(figsize=_size(panels[0]), layout="constrained")[1] if axes is None else axes
    _panel(panels[0], one)
    return one


def _panel(panel: Panel, axes: Any) -> None:
    if isinstance(panel, Heat):
        _heat(panel, axes)
    elif isinstance(panel, Chart):
        _chart(panel, axes)
    elif isinstance(panel, Bars):
        _bars(panel, axes)
    else:
        _sentences(panel, axes)
    axes.set_title(panel.title)


def _size(panel: Panel) -> tuple[float, float]:
    """Inches that have room for every bar and every word."""
    if isinstance(panel, Bars):
        return 8.0, max(3.0, 0.22 * len(panel.bars) + 1)
    if isinstance(panel, Sentences):
        longest = max((sum(len(word) + 1 for word in one.words) for one in panel.sentences), default=0)
        return max(6.0, 0.085 * longest), 0.9 * len(panel.sentences) + 1
    return (6.4, 6.4) if isinstance(panel, Chart) and panel.is_map else (6.4, 4.8)


def _heat(panel: Heat, axes: Any) -> None:
    axes.set_xlabel(panel.axes[1])
    axes.set_ylabel(panel.axes[0])
    if not panel.values.size:
        return
    colours: dict[str, Any] = {"cmap": "tab10", "vmin": -0.5, "vmax": 9.5} if 0 < len(panel.kinds) <= 10 else {}
    if panel.ends:
        colours = {"vmin": panel.ends[0], "vmax": panel.ends[1]}
    image = axes.imshow(panel.values, aspect="auto", interpolation="nearest", **colours)
    if panel.axes != ("layer", "head"):
        axes.set_xticks(range(len(panel.columns)), panel.columns, rotation=90)
        axes.set_yticks(range(len(panel.rows)), panel.rows)
    bar = axes.figure.colorbar(image, ax=axes)
    if panel.kinds:
        bar.set_ticks(range(len(panel.kinds)), labels=panel.kinds)
        bar.ax.set_ylim(-0.5, len(panel.kinds) - 0.5)


def _chart(panel: Chart, axes: Any) -> None:
    spectrum = optional("matplotlib", "drawing a result", module="matplotlib").colormaps
    many = panel.is_ordered or panel.n_colours > 10
    for one in panel.series:
        shade: Any = "0.6" if one.colour is None else f"C{one.colour}"
        if many and one.colour is not None:
            shade = spectrum["viridis"](one.colour / max(panel.n_colours - 1, 1))
        if one.is_line:
            axes.plot(one.x, one.y, color=shade, linestyle="--" if one.is_dashed else "-", label=one.name or None)
        else:
            axes.scatter(one.x, one.y, color=shade, s=14, alpha=0.75, label=one.name or None)
        for x, y, label in zip(one.x, one.y, one.labels, strict=False):
            if label and math.isfinite(x) and math.isfinite(y):
                axes.annotate(label, (x, y), xytext=(4, 3), textcoords="offset points", fontsize="x-small")
    axes.set_xlabel(panel.axes[0])
    axes.set_ylabel(panel.axes[1])
    if panel.is_map:
        axes.set_aspect("equal", adjustable="datalim")
    if panel.has_legend and any(one.name for one in panel.series):
        axes.legend(fontsize="x-small")


def _bars(panel: Bars, axes: Any) -> None:
    places = np.arange(len(panel.bars))
    left = np.zeros(len(panel.bars))
    for index, name in enumerate(panel.parts):
        lengths = np.array([bar.lengths[index] for bar in panel.bars], dtype=float)
        axes.barh(places, lengths, left=left, label=name)
        left = left + np.nan_to_num(lengths)
    baselines = [bar.baseline for bar in panel.bars]
    if panel.baseline:
        axes.scatter(baselines, places, marker="|", s=120, color="C1", label=panel.baseline, zorder=3)
    for place, bar in zip(places, panel.bars, strict=True):
        if all(map(math.isfinite, bar.interval)):
            axes.plot(bar.interval, (place, place), color="0.2", linewidth=1)
    axes.set_yticks(places, [bar.name for bar in panel.bars])
    axes.invert_yaxis()
    if panel.parts and (panel.baseline or panel.is_whole):
        axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1, 1))


def _sentences(panel: Sentences, axes: Any) -> None:
    """Words in rows, a space as wide as a letter, with arcs to the predicted word and dashed ones to the right one."""
    for row, sentence in enumerate(panel.sentences):
        middles, x = [], 0.0
        for word in sentence.words:
            middles.append(x + len(word) / 2)
            x += len(word) + 1
            axes.text(middles[-1], -row, word, ha="center", va="center", fontsize="x-small")
        for link in sentence.links:
            for to, style, shade in (
                (link.predicted, "-", "C0" if link.is_correct else "C3"),
                (link.gold, "--", "0.5"),
            ):
                if to is None or (style == "--" and to == link.predicted):
                    continue
                bend = -0.3 if (to > link.word) == (style == "-") else 0.3
                arrow = {"arrowstyle": "->", "color": shade, "linestyle": style}
                side = 0.12 if style == "-" else -0.12
                arrow["connectionstyle"] = f"arc3,rad={bend}"
                axes.annotate("", (middles[to], side - row), (middles[link.word], side - row), arrowprops=arrow)
        axes.update_datalim([(0.0, -row - 0.6), (x, -row + 0.6)])
    axes.set_axis_off()
    axes.autoscale_view()
