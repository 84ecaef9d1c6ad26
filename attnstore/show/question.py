"""This file draws the answer to a question as layers x heads, one picture for each of its text columns' values."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.show.heatmap import grid_svg
from attnstore.show.page import page, table_html
from attnstore.show.terminal import grid_text
from attnstore.store.result import Result

Grids = Mapping[str, NDArray[np.float64]]


def grids(result: Result) -> Grids:
    """The column that the question paints as [layer, head], by what the other text columns say ("" without any).

    Relations, metrics and variants so become pictures of their own, in the order of the answer. BadInput where
    the question paints nothing, or a head has several values still.
    """
    doing = f"drawing {result.provenance.question or 'an answer'}"
    paint = result.question.paint if result.question else None
    if paint is None:
        raise BadInput(doing, "nothing to paint", "a question with a value for each layer and head")
    table = result.to_arrow()
    texts = [f.name for f in table.schema if pa.types.is_string(f.type) and f.name != paint]
    shape = tuple(int(np.max(table[name].to_numpy(), initial=-1)) + 1 for name in ("layer", "head"))
    found: dict[str, NDArray[np.float64]] = {}
    for row in table.select(["layer", "head", paint, *texts]).to_pylist():
        grid = found.setdefault(", ".join(str(row[name]) for name in texts), np.full(shape, np.nan))
        if not np.isnan(grid[row["layer"], row["head"]]):
            raise BadInput(doing, f"layer {row['layer']}, head {row['head']} has several values of {paint}", "one")
        grid[row["layer"], row["head"]] = np.nan if row[paint] is None else row[paint]
    return found


def draw_answer(result: Result, form: str = "terminal", *, colour: bool = False) -> str:
    """The answer as text, as one SVG, or as a page with every picture and the table.

    BadInput for an SVG of an answer with several pictures.
    """
    assert result.question is not None, "grids() has looked"
    found, name = grids(result), result.question.name
    paint = str(result.question.paint)
    titles = {key: f"{name}: {key or paint}" for key in found}
    if form == "terminal":
        pictures = (grid_text(grid, title=titles[key], colour=colour) for key, grid in found.items())
        return "\n\n".join(picture.rstrip("\n") for picture in pictures)
    if form == "svg":
        if len(found) != 1:
            shown = "; ".join(list(found)[:5])
            raise BadInput(f"drawing {name} as SVG", f"{len(found)} pictures ({shown})", "one", "Ask for a page: html")
        ((key, grid),) = found.items()
        return grid_svg(grid, title=titles[key], unit=paint)
    if form != "html":
        raise BadInput(f"drawing {name}", f"the form {form!r}", "terminal, svg or html")
    parts = [grid_svg(grid, title=titles[key], unit=paint) for key, grid in found.items()]
    return page(name, [result.question.help, *parts, table_html(result.to_arrow())])
