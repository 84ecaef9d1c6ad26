"""This file proves that `attnstore show` hands on what it is asked to draw."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.cli.running import good, invoke


@pytest.fixture
def question(tmp_path: Path) -> Path:
    path = tmp_path / "mine.sql"
    path.write_text(
        "-- A trial.\n-- returns: layer, head, kind, value\n-- paint: layers(value), bars(value, by=head)\n"
        "select layer, head, kind, 0.5 + head as value from heads order by all\n"
    )
    return path


def test_the_first_picture_is_drawn_unless_another_is_asked_for(tiny_store: Path, question: Path) -> None:
    first = ElementTree.fromstring(good("show", tiny_store, question, "--form", "svg").stdout)
    assert "value by layer" in (first.get("aria-label") or "")
    bars = good("show", tiny_store, question, "--picture", "bars").stdout
    assert "█" in bars
    described = good("show", tiny_store, question, "--format", "svg", "--picture", "matrix(value, kind, head)").stdout
    assert "kind encoder, head 0: 0.500 value" in described


def test_a_page_goes_to_a_file(tiny_store: Path, question: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert good("show", tiny_store, question, "--form", "html", "-o", target).stdout == ""
    assert target.read_text(encoding="utf-8").count("<svg") == 2


def test_a_picture_that_is_not_there_is_an_error_in_one_line(tiny_store: Path, question: Path) -> None:
    result = invoke("show", tiny_store, question, "--picture", "pie")
    assert "the question paints layers, bars" in str(result.exception)
    result = invoke("show", tiny_store, question, "--picture", "bars(other, by=head)")
    assert "the answer has no column other" in str(result.exception)


@pytest.mark.parametrize("more", [["--picture", "bars"], ["--where", "example > 1"]])
def test_a_map_has_no_pictures_to_choose(tiny_store: Path, more: list[str]) -> None:
    result = invoke("show", tiny_store, "0", "--layer", 0, "--head", 0, *more)
    assert result.exit_code == 2
    assert "for questions" in result.stderr


def test_where_narrows_what_is_drawn(tiny_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "count.sql"
    path.write_text(
        "-- returns: layer, head, n\n-- paint: n\n"
        "select layer, head, count(*) as n from head_facts group by all order by all\n"
    )
    assert "every value is 1.000" in good("show", tiny_store, path, "--where", "example = 1").stdout
