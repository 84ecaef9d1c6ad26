"""This file makes answers by hand, for the tests of what is drawn from them."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from attnstore.catalogue.header import Header, Line
from attnstore.catalogue.paint import parse_paint
from attnstore.catalogue.question import Column, Param, Question
from attnstore.store.result import Provenance, Result


def answer(paint: str, columns: Mapping[str, object], name: str = "heads/made", **required: object) -> Result:
    """The rows of a question that paints `paint`; `required` are parameters without a default, with their values."""
    table = pa.table(columns)
    header = Header("", {"paint": (Line(1, paint),)}, 1)
    question = Question(
        name=name,
        help="Made up.",
        sql="select 1",
        reads=(),
        params={key: Param(key, "any") for key in required},
        returns=tuple(Column(column) for column in table.column_names),
        source="ours",
        path=Path("made.sql"),
        pictures=parse_paint(header, Path("made.sql"), table.column_names),
    )
    provenance = Provenance("0" * 16, "made", 1, "h", "m", "r", name, "ours", "select 1", required)
    return Result(table, provenance, question)
