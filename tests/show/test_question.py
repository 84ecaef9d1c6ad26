"""Answers are drawn as the picture that their question paints, and refused in words where they cannot be."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import BadInput, BadQuestion, NotFound
from attnstore.show.question import draw_answer
from attnstore.store.figures.figure import panels
from attnstore.store.figures.panels import Heat
from attnstore.store.store import open as open_store
from tests.store.answers import answer


def test_each_metric_is_a_picture_of_its_own(tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        found = store.ask("heads/positions")
        heats = [panel for panel in panels(found, "grid(value)") if isinstance(panel, Heat)]
        grids = dict(zip(["self", "previous", "next"], heats, strict=True))
        for row in found:
            assert grids[row["metric"]].values[row["layer"], row["head"]] == row["value"]
        drawn = draw_answer(found, picture="grid(value)")
        assert [line for line in drawn.splitlines() if line.startswith("heads/")] == [
            "heads/positions: self",
            "heads/positions: previous",
            "heads/positions: next",
        ]


def test_one_picture_is_an_svg_with_a_cell_for_each_head(tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        found = store.ask("heads/entropy")
        (heat,) = panels(found, "grid(entropy_nats)")
        assert isinstance(heat, Heat)
        assert np.array_equal(heat.values, found.to_grid("entropy_nats"))
        svg = draw_answer(found, "svg", picture="grid(entropy_nats)")
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    titles = [element.text or "" for element in root.iter() if element.tag.endswith("title")]
    assert sum("layer" in title and "head" in title for title in titles) >= 6


def test_a_page_holds_every_picture_and_the_table() -> None:
    columns = {"layer": [0, 0], "head": [0, 0], "metric": ["cls", "sep"], "value": [0.1, 0.2]}
    result = answer("value, layers(value, by=metric)", columns)
    text = draw_answer(result, "html")
    # A grid for each metric, and one chart of both.
    assert text.count("<svg") == 3
    assert text.count("<table") == 1
    assert "<script" not in text
    assert draw_answer(result, "html", picture="layers").count("<svg") == 1


def test_several_panels_are_one_svg() -> None:
    columns = {"layer": [0, 0], "head": [0, 0], "metric": ["cls", "sep"], "value": [0.1, 0.2]}
    root = ET.fromstring(draw_answer(answer("value", columns), "svg"))
    groups = [element for element in root if element.tag.endswith("}g")]
    assert len(groups) == 2
    # The second stands beside the first, on the sheet.
    places = [(group.get("transform") or "").removeprefix("translate(").removesuffix(")").split() for group in groups]
    assert places[0] == ["0", "0"]
    assert 100 < float(places[1][0]) < float(root.get("width") or 0)
    assert places[1][1] == "0"
    assert (root.get("aria-label") or "").count("heads/made: ") == 2


def test_a_terminal_shows_cells_and_bars_and_else_the_table() -> None:
    columns = {"layer": [0, 1], "head": [0, 0], "relation": ["det", "obj"], "value": [0.5, 1.0]}
    result = answer("layers(value), grid(value), bars(value, by=relation)", columns)
    assert draw_answer(result).splitlines()[0].split() == ["layer", "head", "relation", "value"]
    assert "█" in draw_answer(result, picture="grid")
    assert draw_answer(result, picture="bars").splitlines()[1].startswith("det █")


@pytest.mark.parametrize(
    ("form", "picture", "error", "message"),
    [
        ("lines", None, BadInput, "the form 'lines'; expected terminal, svg, html"),
        ("svg", "scatter", BadQuestion, "a picture of kind scatter without x"),
        ("svg", "pie", NotFound, "the question paints grid"),
        ("svg", "grid(value)", BadInput, "40 pictures .*; expected at most 36. Ask for a page"),
    ],
)
def test_what_cannot_be_drawn_is_said(form: str, picture: str | None, error: type[Exception], message: str) -> None:
    columns = {"layer": [0] * 40, "head": [0] * 40, "name": [f"n{i}" for i in range(40)], "value": [0.5] * 40}
    with pytest.raises(error, match=message):
        draw_answer(answer("value", columns), form, picture=picture)


def test_a_question_that_paints_nothing_says_how_to_draw_it(tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        found = store.ask("audit/counts")
    with pytest.raises(BadInput, match=r"nothing to paint.*Say what to draw"):
        draw_answer(found)
