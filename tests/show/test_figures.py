"""This file proves on answers made by hand that every picture is well formed, complete, and harmless."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.show.colour import GREY, KINDS, series, web
from attnstore.show.question import draw_answer
from attnstore.store.result import Result
from tests.show.test_pictures import HOSTILE, SVG, hovers, parsed, texts
from tests.store.answers import answer
from tests.store.test_figures import EVIDENCE, HEADS

# Each with the columns of `every` below.
PAINTS = [
    "value",
    "grid(text)",
    "grid(value, by=text)",
    "layers(value)",
    "layers(value, by=text, line=other)",
    "scatter(value, other, label=text, by=text)",
    "scatter(x, y, by=layer)",
    "bars(value, other, by=text, label=text, low=other, high=x)",
    "stack(value, of=text, by=layer)",
    "matrix(value, text, head)",
    "matrix(value, layer, head, by=text)",
    "profile(value, x)",
    "profile(value, x, by=text)",
    "evidence(text, layer, head, gold=head, weight=value)",
]


def every(rows: Sequence[tuple[int | None, int | None, str | None, float | None]]) -> dict[str, pa.Array]:
    """Columns for PAINTS, with their types also where there is no row."""
    layer, head, text, value = ([row[place] for row in rows] for place in range(4))
    return {
        "layer": pa.array(layer, pa.int64()),
        "head": pa.array(head, pa.int64()),
        "text": pa.array(text, pa.string()),
        "value": pa.array(value, pa.float64()),
        **{name: pa.array(value, pa.float64()) for name in ("other", "x", "y")},
    }


def drawn(result: Result, picture: str | None = None) -> str:
    return draw_answer(result, "svg", picture=picture)


def marks(svg: str, name: str) -> list[ElementTree.Element]:
    """The elements of that name which tell something on hover."""
    return [one for one in parsed(svg).iter(f"{SVG}{name}") if one.find(f"{SVG}title") is not None]


@pytest.mark.parametrize("paint", PAINTS)
@pytest.mark.parametrize(
    "rows",
    [
        [],
        [(0, 0, "a", 0.5)],
        [(0, 0, "a", None)],
        [(0, 0, None, None)],
        [(None, None, "a", 0.5)],
        [(0, 0, "a", float("nan")), (0, 1, "a", float("inf"))],
        [(0, 0, "a", -1.0), (3, 0, "b", 1e300)],
        [(0, 0, "a", 0.0)],
    ],
)
def test_any_answer_is_a_picture_in_every_form(paint: str, rows: list[tuple[int, int, str, float]]) -> None:
    result = answer(paint, every(rows))
    svg = drawn(result)
    root = parsed(svg)
    assert (root.get("role"), bool(root.get("aria-label"))) == ("img", True)
    numbers = [value for one in root.iter() for name, value in one.attrib.items() if name not in ("aria-label", "role")]
    assert not any(re.search(r"\b(nan|inf)\b", value) for value in numbers)
    assert "<figure><svg" in draw_answer(result, "html")
    assert draw_answer(result)


@pytest.mark.parametrize("paint", PAINTS)
def test_an_answer_without_values_says_so(paint: str) -> None:
    said = drawn(answer(paint, every([]))).lower()
    assert "no values" in said or "no value" in said or paint == "grid(text)"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    for paint in PAINTS:
        svg = drawn(answer(paint, every([(0, 0, text, 0.5), (1, 1, "b", 0.25)]), name=text, required=text))
        names = {element.tag.removeprefix(SVG) for element in parsed(svg).iter()}
        assert names <= {"svg", "style", "rect", "path", "circle", "text", "title", "g"}
        assert not any(name.startswith("on") for element in parsed(svg).iter() for name in element.attrib)


@given(st.text(max_size=20))
def test_any_text_can_be_drawn(text: str) -> None:
    for paint in ("bars(value, by=text, label=text)", "scatter(x, y, label=text, by=text)"):
        assert parsed(drawn(answer(paint, every([(0, 0, text, 0.5)])))).tag == f"{SVG}svg"


def test_a_chart_has_a_dot_for_each_value_and_tells_it_on_hover() -> None:
    svg = drawn(answer("layers(value)", HEADS))
    dots = marks(svg, "circle")
    assert [dot.findtext(f"{SVG}title") for dot in dots] == [
        "layer 0, head 0: 0.25",
        "layer 1, head 0: 0.75",
        "layer 0: mean 0.25",
        "layer 1: mean 0.75",
    ]
    # More is higher, and a later layer stands further right.
    assert float(dots[1].get("cy") or 0) < float(dots[0].get("cy") or 0)
    assert float(dots[1].get("cx") or 0) > float(dots[0].get("cx") or 0)
    assert {"heads/made: value by layer", "layer", "value", "mean of the layer", "0", "1"} <= set(texts(svg))
    assert (parsed(svg).get("aria-label") or "").endswith("3 points; highest value 0.750 at layer 1, head 0: 0.75")


def test_a_line_leaves_a_gap_where_a_value_is_missing() -> None:
    columns = {"head": [0] * 5, "offset": [-2, -1, 0, 1, 2], "mass": [0.1, 0.2, None, 0.3, 0.4]}
    svg = drawn(answer("profile(mass, offset)", columns))
    (line,) = [one for one in parsed(svg).iter(f"{SVG}path") if one.get("stroke-linejoin") == "round"]
    assert re.sub(r"[-\d. ]", "", line.get("d") or "") == "MLML"


def test_series_have_the_colours_of_their_legend() -> None:
    columns = {"layer": [0, 0], "head": [0, 0], "metric": ["cls", "sep"], "value": [0.1, 0.2]}
    svg = drawn(answer("layers(value, by=metric)", columns))
    assert [dot.get("fill") for dot in marks(svg, "circle")][:2] == list(KINDS[:2])
    strokes = [one.get("stroke") for one in parsed(svg).iter(f"{SVG}path") if one.get("stroke")]
    assert [stroke for stroke in strokes if stroke in KINDS][-2:] == list(KINDS[:2])


def test_points_of_no_group_are_grey_and_an_order_follows_the_scale() -> None:
    columns = {"layer": [0, 1], "x": [0.0, 1.0], "y": [0.0, 1.0], "label": ["cls", None]}
    fills = {dot.get("fill") for dot in marks(drawn(answer("scatter(x, y, by=label)", columns)), "circle")}
    assert fills == {KINDS[0], GREY}
    ordered = [dot.get("fill") for dot in marks(drawn(answer("scatter(x, y, by=layer)", columns)), "circle")]
    assert ordered == [series(0, 2, is_ordered=True), series(1, 2, is_ordered=True)]
    assert ordered[0] == web(0.2)


def test_coordinates_have_the_same_unit_on_both_axes() -> None:
    columns = {"x": [0.0, 10.0, 0.0], "y": [0.0, 0.0, 1.0]}
    places = [
        (float(dot.get("cx") or 0), float(dot.get("cy") or 0))
        for dot in marks(drawn(answer("scatter(x, y)", columns)), "circle")
    ]
    across, up = places[1][0] - places[0][0], places[0][1] - places[2][1]
    assert across / up == pytest.approx(10, rel=0.02)


def test_labels_of_points_do_not_overlap() -> None:
    columns = {"x": [0.0, 0.01, 0.02, 5.0], "y": [0.0, 0.0, 0.0, 5.0], "label": ["first", "second", "third", "far"]}
    svg = drawn(answer("scatter(x, y, label=label)", columns))
    labels = [one for one in parsed(svg).iter(f"{SVG}text") if one.get("class") == "attn-k attn-h"]
    assert "far" in [one.text for one in labels]
    boxes = [(float(one.get("x") or 0), float(one.get("y") or 0), len(one.text or "") * 6.7) for one in labels]
    for index, (x, y, _) in enumerate(boxes):
        for left, top, wide in boxes[:index]:
            assert abs(y - top) >= 10 or x >= left + wide or left >= x + wide


def test_bars_are_as_long_as_their_values_and_marked_at_the_baseline() -> None:
    columns = {"relation": ["det", "obj", "acl"], "accuracy": [0.8, 0.4, None], "baseline": [0.4, None, 0.1]}
    svg = drawn(answer("bars(accuracy, baseline, by=relation)", columns))
    first, second = marks(svg, "rect")
    assert float(first.get("width") or 0) == pytest.approx(2 * float(second.get("width") or 0), rel=0.01)
    assert first.findtext(f"{SVG}title") == "det: accuracy 0.800, baseline 0.400"
    # The first baseline stands where the second bar ends.
    mark = marks(svg, "path")[0]
    end = float(second.get("x") or 0) + float(second.get("width") or 0)
    assert float((mark.get("d") or "M")[1:].split()[0]) == pytest.approx(end, abs=0.2)
    assert {"det", "obj", "acl", "0.800", "no value", "accuracy", "baseline"} <= set(texts(svg))


def test_a_negative_bar_runs_to_the_left_of_zero() -> None:
    svg = drawn(answer("bars(delta, by=head)", {"head": [0, 1], "delta": [-0.5, 0.5]}))
    first, second = marks(svg, "rect")
    assert float(first.get("x") or 0) + float(first.get("width") or 0) == pytest.approx(float(second.get("x") or 0))


def test_only_the_first_bars_of_very_many_are_drawn() -> None:
    columns = {"name": [str(index) for index in range(130)], "v": [1.0] * 130}
    svg = drawn(answer("bars(v, by=name)", columns))
    assert len(marks(svg, "rect")) == 100
    assert "30 of 130 left out" in texts(svg)


def test_parts_of_a_whole_fill_the_bar() -> None:
    columns = {"layer": [0, 0], "pattern": ["vertical", "diagonal"], "share": [3.0, 1.0]}
    svg = drawn(answer("stack(share, of=pattern, by=layer)", columns))
    assert hovers(svg) == ["layer 0: vertical 75.0%", "layer 0: diagonal 25.0%"]
    first, second = marks(svg, "rect")
    assert float(first.get("x") or 0) + float(first.get("width") or 0) == pytest.approx(float(second.get("x") or 0))
    assert {"75%", "25%", "vertical", "diagonal"} <= set(texts(svg))


def test_evidence_has_an_arc_to_the_predicted_word_and_a_dashed_one_to_the_right_word() -> None:
    svg = drawn(answer("evidence", EVIDENCE))
    assert hovers(svg) == ["the → cat: 0.900", "a → saw: 0.200", "a → dog: right", "a → dog: right"]
    arcs = marks(svg, "path")
    assert [arc.get("stroke-dasharray") is not None for arc in arcs] == [False, False, True, True]
    assert arcs[0].get("stroke") != arcs[1].get("stroke")
    assert float(arcs[0].get("stroke-opacity") or 0) > float(arcs[1].get("stroke-opacity") or 0)
    assert (parsed(svg).get("aria-label") or "").endswith("2 sentences, 3 predictions, 1 right")


def test_a_text_grid_tells_the_text_on_hover_and_has_no_scale() -> None:
    svg = drawn(answer("label", {"layer": [0, 0], "head": [0, 1], "label": ["cls", None]}))
    assert hovers(svg) == ["layer 0, head 0: cls", "layer 0, head 1: no value"]
    assert "cls" in texts(svg)


def test_panels_of_one_column_are_coloured_alike() -> None:
    columns = {"layer": [0, 0], "head": [0, 0], "offset": [1, 2], "value": [0.0, 1.0]}
    cells = marks(drawn(answer("grid(value, by=offset)", columns)), "rect")
    assert [cell.get("fill") for cell in cells] == [web(0), web(1)]


def test_too_many_points_are_refused() -> None:
    columns = {"layer": pa.array(range(20_001)), "value": pa.array([0.5] * 20_001)}
    with pytest.raises(BadInput, match="points; expected at most 20,000"):
        drawn(answer("layers(value)", columns))
