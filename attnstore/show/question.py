"""This file draws the answer to a question as the picture that its `paint:` or the caller names."""

from collections.abc import Sequence

from attnstore.errors import BadInput
from attnstore.show.characters import bars_text, heat_text
from attnstore.show.page import page, table_html
from attnstore.show.pictures.bars import bars
from attnstore.show.pictures.chart import chart
from attnstore.show.pictures.heat import heat
from attnstore.show.pictures.sentences import sentences
from attnstore.show.svg import Drawing, sheet, svg
from attnstore.show.terminal import table_text
from attnstore.store.figures.figure import panels, picture_of
from attnstore.store.figures.panels import Bars, Chart, Heat, Panel
from attnstore.store.result import Result

FORMS = ("terminal", "svg", "html")
WIDEST = 1240
MOST_PANELS = 36


def drawing(panel: Panel) -> Drawing:
    """The panel drawn by its kind."""
    if isinstance(panel, Heat):
        return heat(panel)
    if isinstance(panel, Chart):
        return chart(panel)
    if isinstance(panel, Bars):
        return bars(panel)
    return sentences(panel)


def draw_answer(result: Result, form: str = "terminal", *, picture: str | None = None, colour: bool = False) -> str:
    """The answer as text, as one SVG, or as a page with its pictures and the table.

    `picture` is a name or a description of `paint:`. A page without it holds every picture of the question. Text is
    drawn for cells and bars; of other pictures the table is shown. BadInput for an SVG of more than 36 panels.
    """
    name = result.provenance.question or "answer"
    if form not in FORMS:
        raise BadInput(f"drawing {name}", f"the form {form!r}", ", ".join(FORMS))
    picture_of(result, picture)  # which says at once where there is none
    if form == "terminal":
        return _text(result, panels(result, picture), colour)
    if form == "svg":
        return svg(_sheet(name, panels(result, picture)))
    drawn: list[str] = []
    for one in [picture] if picture or not result.question else [found.name for found in result.question.pictures]:
        found = panels(result, one)
        # Small charts are read side by side; others scroll by themselves.
        small = any(isinstance(panel, Chart) and panel.is_small for panel in found)
        drawn += [svg(_sheet(name, found))] if small else [svg(drawing(panel)) for panel in found]
    said = result.question.help if result.question else ""
    return page(name, [said, *drawn, table_html(result.to_arrow())])


def _sheet(name: str, found: Sequence[Panel]) -> Drawing:
    """One drawing of all panels."""
    if len(found) == 1:
        return drawing(found[0])
    if len(found) > MOST_PANELS:
        shown = "; ".join(panel.title for panel in found[:5])
        raise BadInput(
            f"drawing {name} as one SVG",
            f"{len(found)} pictures ({shown})",
            f"at most {MOST_PANELS}",
            "Ask for a page: html",
        )
    return sheet([drawing(panel) for panel in found], WIDEST)


def _text(result: Result, found: Sequence[Panel], colour: bool) -> str:
    """Cells and bars as characters, else the table."""
    if not found or not isinstance(found[0], Heat | Bars):
        return table_text(result.to_arrow())
    drawn = [
        heat_text(panel, colour=colour) if isinstance(panel, Heat) else bars_text(panel, colour=colour)
        for panel in found
        if isinstance(panel, Heat | Bars)
    ]
    return "\n\n".join(drawn)
