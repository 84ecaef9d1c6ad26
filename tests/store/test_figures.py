"""This file proves on answers made by hand what each picture is made of, before it is drawn."""

import numpy as np
import pyarrow as pa
import pytest

from attnstore.errors import BadInput, BadQuestion, NotFound
from attnstore.store.figures.figure import panels, picture_of
from attnstore.store.figures.panels import Bars, Chart, Heat, Sentences
from attnstore.store.result import Result
from tests.store.answers import answer

NAN = float("nan")
HEADS = {"layer": [0, 0, 1], "head": [0, 1, 0], "value": [0.25, None, 0.75]}


def heats(result: Result, picture: str | None = None) -> list[Heat]:
    return [panel for panel in panels(result, picture) if isinstance(panel, Heat)]


def charts(result: Result, picture: str | None = None) -> list[Chart]:
    return [panel for panel in panels(result, picture) if isinstance(panel, Chart)]


def bars(result: Result) -> Bars:
    (panel,) = panels(result)
    assert isinstance(panel, Bars)
    return panel


def sentences(result: Result) -> Sentences:
    (panel,) = panels(result)
    assert isinstance(panel, Sentences)
    return panel


def test_a_grid_has_layers_down_and_heads_across() -> None:
    (heat,) = heats(answer("value", HEADS))
    np.testing.assert_array_equal(heat.values, [[0.25, NAN], [0.75, NAN]])
    assert (heat.title, heat.unit, heat.axes) == ("heads/made: value", "value", ("layer", "head"))


def test_texts_that_set_rows_of_a_head_apart_give_grids_of_one_shape() -> None:
    columns = {"layer": [0, 1, 0], "head": [0, 0, 0], "metric": ["self", "self", "next"], "value": [1.0, 2.0, 3.0]}
    first, second = heats(answer("value", columns))
    assert [first.title, second.title] == ["heads/made: self", "heads/made: next"]
    np.testing.assert_array_equal(first.values, [[1], [2]])
    np.testing.assert_array_equal(second.values, [[3], [NAN]])


def test_texts_that_differ_by_head_do_not_tear_a_grid_apart() -> None:
    columns = {"layer": [0, 0], "head": [0, 1], "label": ["cls", "sep"], "relation": ["det", "det"], "v": [1.0, 2.0]}
    (heat,) = heats(answer("v", columns))
    assert heat.title == "heads/made: det"
    np.testing.assert_array_equal(heat.values, [[1, 2]])


def test_a_grid_of_texts_gives_each_text_a_colour() -> None:
    (heat,) = heats(answer("label", {"layer": [0, 0, 0], "head": [0, 1, 2], "label": ["cls", None, "next"]}))
    assert heat.kinds == ["cls", "next"]
    np.testing.assert_array_equal(heat.values, [[0, NAN, 1]])


def test_grids_of_a_chosen_column_share_their_scale() -> None:
    columns = {"layer": [0, 0], "head": [0, 0], "offset": [1, -1], "value": [0.5, 0.1]}
    found = heats(answer("grid(value, by=offset)", columns))
    assert [heat.title for heat in found] == ["heads/made: offset -1", "heads/made: offset 1"]
    assert [heat.ends for heat in found] == [(0.1, 0.5), (0.1, 0.5)]


def test_a_head_with_several_values_is_refused() -> None:
    with pytest.raises(BadInput, match="layer 0, head 0 has several values of value"):
        panels(answer("value", {"layer": [0, 0], "head": [0, 0], "value": [1.0, 2.0]}))
    with pytest.raises(BadInput, match="below 0"):
        panels(answer("value", {"layer": [-1], "head": [0], "value": [1.0]}))


def test_a_matrix_averages_the_rows_of_a_cell_and_says_so() -> None:
    columns = {
        "layer": [0, 1, 0, 1],
        "query_class": ["noun", "noun", "verb", "verb"],
        "key_class": ["cls", "cls", "noun", "noun"],
        "mass": [0.2, 0.4, 0.5, None],
    }
    (heat,) = heats(answer("matrix(mass, query_class, key_class)", columns))
    np.testing.assert_allclose(heat.values, [[0.3, NAN], [NAN, 0.5]])
    assert (heat.rows, heat.columns) == (["noun", "verb"], ["cls", "noun"])
    assert heat.title == "heads/made: mass, mean of up to 2 rows"
    by_layer = heats(answer("matrix(mass, query_class, key_class, by=layer)", columns))
    np.testing.assert_allclose(by_layer[1].values, [[0.4, NAN], [NAN, NAN]])
    assert [heat.title for heat in by_layer] == ["heads/made: layer 0", "heads/made: layer 1"]
    assert by_layer[0].ends == (0.2, 0.5)


def test_rows_of_a_matrix_may_have_names_that_occur_twice() -> None:
    columns = {
        "query": [0, 1, 0, 1],
        "key": [0, 0, 1, 1],
        "text": ["the", "the", "the", "the"],
        "w": [1.0, 2.0, 3.0, 4.0],
    }
    (heat,) = heats(answer("matrix(w, query, key, row_name=text)", columns))
    assert (heat.rows, heat.columns) == (["the", "the"], ["0", "1"])
    np.testing.assert_array_equal(heat.values, [[1, 3], [2, 4]])


def test_values_over_layers_come_with_the_mean_of_each_layer_and_a_reference() -> None:
    columns = {
        "layer": [0, 0, 1, 1],
        "head": [0, 1, 0, 1],
        "nats": [1.0, 2.0, 5.0, None],
        "uniform": [4.0, 4.0, 6.0, 6.0],
    }
    (chart,) = charts(answer("layers(nats, line=uniform)", columns))
    points, means, reference = chart.series
    np.testing.assert_array_equal(points.x, [0, 0, 1, 1])
    np.testing.assert_array_equal(points.y, [1, 2, 5, NAN])
    assert points.hovers[2] == "layer 1, head 0: 5"
    np.testing.assert_array_equal(means.y, [1.5, 5.0])
    assert (means.is_line, means.is_dashed, means.name) == (True, False, "mean of the layer")
    np.testing.assert_array_equal(reference.y, [4, 6])
    assert (reference.is_dashed, reference.name) == (True, "uniform")
    assert chart.axes == ("layer", "nats")


def test_each_metric_over_layers_has_its_colour_and_its_line() -> None:
    columns = {
        "layer": [0, 0, 0, 0],
        "head": [0, 1, 0, 1],
        "metric": ["cls", "cls", "sep", "sep"],
        "v": [1.0, 3.0, 5.0, 7.0],
    }
    (chart,) = charts(answer("layers(v, by=metric)", columns))
    assert [(one.name, one.colour, one.is_line) for one in chart.series] == [
        ("", 0, False),
        ("cls", 0, True),
        ("", 1, False),
        ("sep", 1, True),
    ]
    assert [one.y.tolist() for one in chart.series if one.is_line] == [[2.0], [6.0]]
    # Points of two metrics stand side by side, their means in the middle.
    assert chart.series[0].x[0] < 0 < chart.series[2].x[0]
    assert chart.series[1].x.tolist() == [0.0]


def test_texts_that_set_rows_apart_give_charts_of_their_own() -> None:
    columns = {"layer": [0, 0], "head": [0, 0], "direction": ["a_to_b", "b_to_a"], "v": [1.0, 2.0]}
    assert [chart.title for chart in charts(answer("layers(v)", columns))] == [
        "heads/made: v by layer, a_to_b",
        "heads/made: v by layer, b_to_a",
    ]


def test_heads_in_a_plane_are_coloured_by_kind_or_in_order() -> None:
    columns = {
        "layer": [0, 1, 1],
        "head": [0, 0, 1],
        "x": [0.0, 1.0, None],
        "y": [0.0, 2.0, 3.0],
        "label": ["cls", None, "cls"],
    }
    result = answer("scatter(x, y, label=label, by=label), scatter(x, y, by=layer)", columns)
    (chart,) = charts(result)
    assert [(one.name, one.colour, len(one.x)) for one in chart.series] == [("", None, 1), ("cls", 0, 2)]
    assert chart.series[1].labels == ["cls", "cls"]
    assert chart.series[1].hovers[0] == "cls, layer 0, head 0, label cls: 0, 0"
    assert (chart.is_map, chart.is_ordered) == (True, False)
    (by_layer,) = charts(result, "scatter-2")
    assert [(one.name, one.colour) for one in by_layer.series] == [("0", 0), ("1", 1)]
    assert by_layer.is_ordered
    assert not charts(result, "scatter(y, layer)")[0].is_map


def test_a_profile_has_a_panel_for_each_layer_and_a_line_for_each_head() -> None:
    columns = {
        "layer": [0, 0, 0, 0, 1, 1],
        "head": [0, 0, 1, 1, 0, 0],
        "offset": [1, -1, -1, 1, -1, 1],
        "mass": [0.2, 0.6, 0.1, None, None, None],
    }
    first, second = charts(answer("profile(mass, offset)", columns))
    assert [one.name for one in first.series] == ["head 0", "head 1"]
    np.testing.assert_array_equal(first.series[0].x, [-1, 1])
    np.testing.assert_array_equal(first.series[0].y, [0.6, 0.2])
    np.testing.assert_array_equal(first.series[1].y, [0.1, NAN])
    assert first.series[0].labels == ["head 0", ""]
    assert second.series == []
    assert [first.has_legend, second.has_legend] == [False, True]


def test_bars_carry_what_they_have_to_beat() -> None:
    columns = {"relation": ["det", "obj"], "accuracy": [0.8, None], "baseline": [0.5, 0.3], "head_label": ["3-9", None]}
    panel = bars(answer("bars(accuracy, baseline, by=relation, label=head_label)", columns))
    assert (panel.parts, panel.baseline, panel.is_whole) == (["accuracy"], "baseline", False)
    assert (panel.bars[0].name, panel.bars[0].lengths, panel.bars[0].baseline, panel.bars[0].note) == (
        "det",
        [0.8],
        0.5,
        "3-9",
    )
    assert np.isnan(panel.bars[1].lengths[0])
    assert panel.bars[1].note == ""


def test_parts_of_a_whole_are_shares_of_its_sum() -> None:
    columns = {"layer": [0, 0, 0, 1, 2], "pattern": ["v", "d", "v", "d", "v"], "share": [1.0, 1.0, 2.0, 0.5, None]}
    panel = bars(answer("stack(share, of=pattern, by=layer)", columns))
    assert (panel.parts, panel.is_whole) == (["v", "d"], True)
    assert [(bar.name, list(bar.lengths)) for bar in panel.bars[:2]] == [
        ("layer 0", [0.75, 0.25]),
        ("layer 1", [0.0, 1.0]),
    ]
    assert np.isnan(panel.bars[2].lengths).all()


def test_parts_of_one_whole_are_one_bar() -> None:
    panel = bars(
        answer("stack(n, of=p, by=layer)", {"layer": pa.array([None, None], pa.int64()), "p": ["a", "b"], "n": [1, 3]})
    )
    assert [(bar.name, list(bar.lengths)) for bar in panel.bars] == [("all", [0.25, 0.75])]


EVIDENCE = {
    "example": [3, 3, 4],
    "sentence": ["the cat saw a dog", "the cat saw a dog", "the cat saw a dog"],
    "first_word": [10, 10, 0],
    "word": [10, 13, 3],
    "predicted_word": [11, 12, None],
    "gold_word": [11, 14, 4],
    "weight": [0.9, 0.2, None],
}


def test_evidence_links_the_words_of_a_sentence() -> None:
    first, second = sentences(answer("evidence", EVIDENCE)).sentences
    assert first.words == ["the", "cat", "saw", "a", "dog"]
    links = [(link.word, link.predicted, link.gold, link.is_correct) for link in first.links]
    assert links == [(0, 1, 1, True), (3, 2, 4, False)]
    assert [(link.word, link.predicted, link.gold) for link in second.links] == [(3, None, 4)]
    assert np.isnan(second.links[0].weight)


def test_words_far_from_every_link_are_left_out_of_evidence() -> None:
    words = [f"w{place}" for place in range(30)]
    columns = {"sentence": [words, words], "word": [5, 20], "predicted_word": [6, 22], "weight": [0.5, 0.5]}
    (sentence,) = sentences(answer("evidence", columns)).sentences
    assert sentence.words == ["…", *words[2:10], "…", *words[17:26], "…"]
    assert [(sentence.words[link.word], sentence.words[link.predicted or 0]) for link in sentence.links] == [
        ("w5", "w6"),
        ("w20", "w22"),
    ]


def test_a_place_outside_the_sentence_is_not_drawn() -> None:
    columns = {"sentence": ["a b", "a b"], "word": [0, 7], "predicted_word": [-1, 1]}
    (sentence,) = sentences(answer("evidence", columns)).sentences
    assert [(link.word, link.predicted) for link in sentence.links] == [(0, None)]


def test_what_the_caller_had_to_choose_stands_in_the_title() -> None:
    assert sentences(answer("evidence", EVIDENCE, relation="det", layer=2)).title == "heads/made relation=det layer=2"


def test_the_first_picture_is_the_default_and_others_have_names() -> None:
    result = answer("layers(value), value", HEADS)
    assert picture_of(result).kind == "layers"
    assert picture_of(result, "grid").kind == "grid"
    with pytest.raises(NotFound, match="layers, grid"):
        picture_of(result, "bars-2")
    with pytest.raises(BadQuestion, match="no column other"):
        picture_of(result, "bars(value, by=other)")
    with pytest.raises(BadInput, match="nothing to paint"):
        picture_of(Result(result.to_arrow(), result.provenance))


def test_columns_of_the_wrong_kind_are_refused() -> None:
    columns = {"layer": [0], "head": [0], "name": ["x"], "list": [[1.0]], "value": [1.0]}
    with pytest.raises(BadInput, match="the column name is of type string; expected numbers"):
        panels(answer("layers(name)", columns))
    with pytest.raises(BadInput, match="the column list is of type list"):
        panels(answer("bars(value, by=list)", columns))
