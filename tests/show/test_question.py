"""Answers are drawn as layers x heads, one picture for each metric, and refused in words where they cannot be."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import BadInput
from attnstore.show.question import draw_answer, grids
from attnstore.store.store import open as open_store


def test_each_metric_is_a_picture_of_its_own(tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        answer = store.ask("heads/positions")
        found = grids(answer)
        assert list(found) == ["self", "previous", "next"]
        for row in answer:
            assert found[row["metric"]][row["layer"], row["head"]] == row["value"]
        drawn = draw_answer(answer)
        assert [line for line in drawn.splitlines() if line.startswith("heads/")] == [
            "heads/positions: self",
            "heads/positions: previous",
            "heads/positions: next",
        ]


def test_one_picture_is_an_svg_with_a_cell_for_each_head(tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        answer = store.ask("heads/entropy")
        assert grids(answer).keys() == {""}
        assert np.array_equal(grids(answer)[""], answer.to_grid("entropy_nats"))
        svg = draw_answer(answer, "svg")
    root = ET.fromstring(svg)
    assert root.tag.endswith("svg")
    titles = [element.text or "" for element in root.iter() if element.tag.endswith("title")]
    assert sum("layer" in title and "head" in title for title in titles) >= 6


def test_a_page_holds_every_picture_and_the_table(tiny_store: Path) -> None:
    with open_store(tiny_store) as store:
        text = draw_answer(store.ask("heads/special"), "html")
    assert text.count("<svg") == 5
    assert text.count("<table") == 1
    assert "<script" not in text


@pytest.mark.parametrize(
    ("question", "form", "message"),
    [
        ("heads/positions", "svg", "3 pictures .*; expected one. Ask for a page"),
        ("heads/entropy", "lines", "the form 'lines'"),
        ("audit/counts", "terminal", "nothing to paint"),
    ],
)
def test_what_cannot_be_drawn_is_said(tiny_store: Path, question: str, form: str, message: str) -> None:
    with open_store(tiny_store) as store, pytest.raises(BadInput, match=message):
        draw_answer(store.ask(question), form)
