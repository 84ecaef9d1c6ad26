"""This file draws coloured cells with a name for each row and column."""

from attnstore.show.cell import clip, visible
from attnstore.show.heatmap import LABEL_COLUMNS, heatmap
from attnstore.show.svg import Drawing
from attnstore.store.figures.panels import Heat


def heat(panel: Heat) -> Drawing:
    """The cells with their names at the edges, the value of each on hover, and the scale below."""
    names = [[clip(visible(name), LABEL_COLUMNS) for name in side] for side in (panel.rows, panel.columns)]

    def place(row: int, column: int) -> str:
        return f"{panel.axes[0]} {panel.rows[row]}, {panel.axes[1]} {panel.columns[column]}"

    return heatmap(panel.values, panel.title, panel.unit, names, panel.axes, place, panel.kinds, panel.ends)
