"""This file makes pictures of coloured cells: layers x heads, and a value for each pair of two columns."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.store.figures.panels import Heat
from attnstore.store.figures.rows import Rows


def grid(rows: Rows, title: str) -> list[Heat]:
    """Values [layer, head], a panel for each value of `by` or of the text columns that set rows of a head apart.

    All panels have the shape of the whole answer, and those of `by` one scale. A text column gives each text a colour.
    BadInput where a head has several values still.
    """
    rows = rows.known("layer", "head")
    if any((rows.numbers(role) < 0).any() for role in ("layer", "head")):
        raise BadInput(rows.doing, "a layer or head below 0", "numbers from 0")
    shape = tuple(int(np.max(rows.numbers(role), initial=-1)) + 1 for role in ("layer", "head"))
    value = rows.name("value")
    kinds = [str(kind) for kind in rows.distinct("value")] if rows.is_text("value") else []
    ends = _ends(rows.numbers("value")) if rows.has("by") and not rows.is_text("value") else None
    panels = []
    for name, part in rows.parts("by", ("layer", "head")):
        values = _indices(part.texts("value"), kinds) if rows.is_text("value") else part.numbers("value")
        array = np.full(shape, np.nan)
        taken = np.zeros(shape, dtype=bool)
        places = zip(part.numbers("layer").astype(int), part.numbers("head").astype(int), strict=True)
        for (layer, head), number in zip(places, values, strict=True):
            if taken[layer, head]:
                raise BadInput(rows.doing, f"layer {layer}, head {head} has several values of {value}", "one")
            array[layer, head], taken[layer, head] = number, True
        layers, heads = ([str(index) for index in range(side)] for side in shape)
        panels.append(Heat(f"{title}: {name or value}", array, layers, heads, ("layer", "head"), value, kinds, ends))
    return panels


def matrix(rows: Rows, title: str) -> list[Heat]:
    """Values [row, column] at the values of two columns; several of a cell are averaged, and the title says so.

    A panel for each value of `by`, all on one scale, or of the text columns that set the rows of a cell apart.
    `row_name` and `column_name` are shown in place of values that are only numbers, such as those of tokens.
    """
    axes = rows.name("row"), rows.name("column")
    places = [{str(value): place for place, value in enumerate(rows.distinct(role))} for role in ("row", "column")]
    names = [_names(rows, role, places[side]) for side, role in enumerate(("row", "column"))]
    panels = []
    for name, part in rows.parts("by", ("row", "column")):
        sums, counts = (np.zeros((len(places[0]), len(places[1]))) for _ in range(2))
        for row, column, number in zip(part.texts("row"), part.texts("column"), part.numbers("value"), strict=True):
            if row in places[0] and column in places[1] and np.isfinite(number):
                place = places[0][row], places[1][column]
                sums[place] += number
                counts[place] += 1
        array = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        most = int(counts.max(initial=0))
        few = "up to " if (counts[counts > 0] < most).any() else ""
        mean = f", mean of {few}{most} rows" if most > 1 else ""
        titled = f"{title}: {name or rows.name('value')}{mean}"
        panels.append(Heat(titled, array, names[0], names[1], axes, rows.name("value")))
    shared = _ends(np.concatenate([panel.values.ravel() for panel in panels])) if rows.has("by") and panels else None
    return [replace(panel, ends=shared) for panel in panels]


def _names(rows: Rows, role: str, places: dict[str, int]) -> list[str]:
    """What is written beside each row or column: its value, or what it is called where that is a column."""
    called = f"{role}_name"
    said = dict(zip(rows.texts(role), rows.texts(called), strict=True)) if rows.has(called) else {}
    return [said.get(value) or value for value in places]


def _ends(values: NDArray[np.float64]) -> tuple[float, float] | None:
    """The lowest and the highest finite value."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else None


def _indices(texts: list[str], kinds: list[str]) -> NDArray[np.float64]:
    return np.array([kinds.index(text) if text in kinds else np.nan for text in texts], dtype=np.float64)
