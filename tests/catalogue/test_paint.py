"""This file proves that `paint:` is read exactly; its mistakes are proven with those of the other keys."""

from pathlib import Path

import pytest

from attnstore.catalogue.header import Header, Line
from attnstore.catalogue.paint import KINDS, Picture, choose, parse_paint
from attnstore.errors import BadQuestion, NotFound

COLUMNS = ("layer", "head", "metric", "value", "accuracy", "baseline", "relation")


def parsed(text: str, columns: tuple[str, ...] = COLUMNS) -> tuple[Picture, ...]:
    return parse_paint(Header("", {"paint": (Line(7, text),)}, 7), Path("mine.sql"), columns)


def test_a_column_alone_is_a_grid_of_it() -> None:
    assert parsed("value") == parsed("grid(value)") == parsed("grid(value=value, head=head)")
    assert parsed("value")[0].columns == {"value": "value", "layer": "layer", "head": "head"}


def test_columns_fill_the_roles_in_order_and_by_name() -> None:
    (bars,) = parsed("bars(accuracy, baseline, by=relation)")
    assert bars.columns == {"value": "accuracy", "baseline": "baseline", "by": "relation"}
    assert parsed("bars(accuracy, by=relation)")[0].columns == {"value": "accuracy", "by": "relation"}
    assert parsed("bars(by=relation, accuracy)")[0].columns == {"value": "accuracy", "by": "relation"}
    assert parsed("matrix(value, layer, head)")[0].columns == {"value": "value", "row": "layer", "column": "head"}


def test_the_usual_column_is_taken_where_it_is_there() -> None:
    assert parsed("layers(value)")[0].columns == {"value": "value", "layer": "layer", "head": "head"}
    assert parsed("layers(value)", ("layer", "value"))[0].columns == {"value": "value", "layer": "layer"}
    assert parsed("grid(value, layer=a, head=b)", ("a", "b", "value"))[0].columns["layer"] == "a"
    with pytest.raises(BadQuestion, match=r"mine.sql, line 7: the answer has no column layer"):
        parsed("layers(value)", ("value",))


def test_several_pictures_have_names_of_their_own() -> None:
    pictures = parsed("layers(value, by=metric), value, layers(accuracy)")
    assert [picture.name for picture in pictures] == ["layers", "grid", "layers-2"]
    assert pictures[2].columns["value"] == "accuracy"


def test_a_column_named_like_a_kind_is_a_column() -> None:
    assert parsed("layers", ("layer", "head", "layers"))[0].columns["value"] == "layers"
    (picture,) = parsed("evidence", ("sentence", "word", "predicted_word", "weight"))
    assert picture.kind == "evidence"
    assert set(picture.columns) == {"sentence", "word", "predicted", "weight"}


def test_a_picture_prints_as_it_could_be_written() -> None:
    for text in ("value", "bars(accuracy, baseline, by=relation)", "layers(value, by=metric)"):
        (picture,) = parsed(text)
        assert parsed(str(picture))[0].columns == picture.columns


def test_a_picture_is_chosen_by_name_or_described() -> None:
    pictures = parsed("value, layers(value), layers(accuracy)")
    assert choose(pictures, "layers-2", COLUMNS) is pictures[2]
    assert choose(pictures, "grid", COLUMNS) is pictures[0]
    assert choose(pictures, "bars(value, by=metric)", COLUMNS).columns == {"value": "value", "by": "metric"}
    with pytest.raises(NotFound, match=r"the question paints grid, layers, layers-2; expected one of them"):
        choose(pictures, "pie", COLUMNS)
    with pytest.raises(NotFound, match="the question paints nothing"):
        choose((), "value", COLUMNS)
    with pytest.raises(BadQuestion, match="no column y"):
        choose(pictures, "bars(y, by=metric)", COLUMNS)
    with pytest.raises(BadQuestion, match="bars without value"):
        choose(pictures, "bars", COLUMNS)


def test_each_kind_needs_a_value_before_what_may_be_left_out() -> None:
    for roles in KINDS.values():
        assert roles[0].needed
        assert len({role.name for role in roles}) == len(roles)
