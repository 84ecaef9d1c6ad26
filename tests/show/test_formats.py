"""This file proves that other programs read back what is written in each format."""

import csv
import datetime
import decimal
import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.show.formats import FORMATS, render

TABLE = pa.table(
    {
        "layer": pa.array([0, 1, None], pa.int64()),
        "value": [0.5, math.nan, 1e-5],
        "form": ['say "hi", you', "", None],
        "ok": [True, False, None],
        "masses": [[0.5, math.inf], [], None],
    }
)


def text(table: pa.Table, format: str) -> str:  # noqa: A002
    result = render(table, format)
    assert isinstance(result, str)
    return result


def test_csv_tells_null_from_an_empty_text_and_keeps_full_precision() -> None:
    assert text(TABLE, "csv") == (
        'layer,value,form,ok,masses\n0,0.5,"say ""hi"", you",true,"[0.5, null]"\n1,nan,"",false,[]\n,1e-05,,,\n'
    )


def test_csv_of_one_column_has_no_empty_lines_for_readers_to_skip() -> None:
    assert text(pa.table({"form": ["a", None, ""]}), "csv") == 'form\na\n""\n""\n'


def test_csv_quotes_spaces_at_the_ends_which_readers_may_trim() -> None:
    assert text(pa.table({"form": [" a", "b c"]}), "csv") == 'form\n" a"\nb c\n'


def test_json_is_an_array_of_row_objects_without_nan() -> None:
    assert text(TABLE, "json") == (
        "[\n"
        '  {"layer": 0, "value": 0.5, "form": "say \\"hi\\", you", "ok": true, "masses": [0.5, null]},\n'
        '  {"layer": 1, "value": null, "form": "", "ok": false, "masses": []},\n'
        '  {"layer": null, "value": 1e-05, "form": null, "ok": null, "masses": null}\n'
        "]\n"
    )
    assert text(TABLE.slice(0, 0), "json") == "[]\n"


def test_integers_stay_integers_in_json_also_as_sums() -> None:
    table = pa.table(
        {
            "big": [2**53 + 1],
            "sum": pa.array([decimal.Decimal(12)], pa.decimal128(38, 0)),
            "half": pa.array([decimal.Decimal("0.5")], pa.decimal128(2, 1)),
        }
    )
    assert text(table, "json") == '[\n  {"big": 9007199254740993, "sum": 12, "half": 0.5}\n]\n'
    assert text(table, "csv") == "big,sum,half\n9007199254740993,12,0.5\n"


def test_json_refuses_to_lose_a_column_and_csv_keeps_both() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(BadInput, match="the column 'a' occurs twice"):
        render(twice, "json")
    assert text(twice, "csv") == "a,a\n1,2\n"


def test_dates_bytes_structs_and_maps_have_a_form_in_json() -> None:
    table = pa.table(
        {
            "at": [datetime.datetime(2024, 1, 2, 3, 4, 5)],
            "raw": [b"\x00\xff"],
            "struct": [{"a": math.nan, "b": 1}],
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "small": pa.array(np.array([0.5], np.float16)),
        }
    )
    assert json.loads(text(table, "json")) == [
        {"at": "2024-01-02T03:04:05", "raw": "00ff", "struct": {"a": None, "b": 1}, "map": [["k", 1]], "small": 0.5}
    ]


def test_json_escapes_what_would_steer_a_terminal_and_means_the_same() -> None:
    shown = text(pa.table({"a\x1b": ["\x1b[31m\x9b\u202e日本"]}), "json")
    assert shown == '[\n  {"a\\u001b": "\\u001b[31m\\u009b\\u202e日本"}\n]\n'
    assert json.loads(shown) == [{"a\x1b": "\x1b[31m\x9b\u202e日本"}]


def test_markdown_escapes_its_own_marks_and_aligns_numbers() -> None:
    table = pa.table({"entropy_nats": [0.5], "form": ["a|b <script> [x](y) *z* _u_ `\n"]})
    assert text(table, "markdown") == (
        "| entropy_nats | form |\n"
        "| ---: | --- |\n"
        "| 0.500 | a\\|b &lt;script&gt; \\[x\\](y) \\*z\\* \\_u\\_ \\`\\\\n |\n"
    )


def test_parquet_and_arrow_give_the_table_back_with_its_metadata() -> None:
    table = TABLE.replace_schema_metadata({"question": "heads/entropy"})
    parquet, stream = render(table, "parquet"), render(table, "arrow")
    assert isinstance(parquet, bytes)
    assert isinstance(stream, bytes)
    for back in (pq.read_table(io.BytesIO(parquet)), pa.ipc.open_stream(stream).read_all()):
        assert back.schema.metadata == {b"question": b"heads/entropy"}
        assert back.drop(["value", "masses"]).equals(table.drop(["value", "masses"]))
        assert str(back.to_pylist()) == str(table.to_pylist())


def test_a_table_for_the_eye_ends_with_a_newline_and_says_what_it_left_out() -> None:
    assert render(pa.table({"a": [1, 2]}), "table", max_rows=1) == "a\n─\n1\n… 1 of 2 rows left out\n"


@pytest.mark.parametrize("format", FORMATS)
def test_tables_without_rows_or_columns_have_every_format(format: str) -> None:  # noqa: A002
    assert render(pa.table({"a": pa.array([], pa.string())}), format)
    assert render(pa.table({}), format)


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(BadInput, match="the format 'yaml'; expected one of table, csv, json, markdown, parquet, arrow"):
        render(TABLE, "yaml")


SCALARS = st.none() | st.text(st.characters(codec="utf-8"))
ROWS = st.lists(st.tuples(SCALARS, st.none() | st.floats(), st.none() | st.integers(-(2**63), 2**63 - 1)), max_size=8)


@given(ROWS)
def test_json_is_valid_and_complete_for_any_values(rows: list[tuple[str | None, float | None, int | None]]) -> None:
    table = table_of(rows)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    back = json.loads(text(table, "json"), parse_constant=refuse)
    want = [(a, b if b is not None and math.isfinite(b) else None, c) for a, b, c in rows]
    assert [(row["a"], row["b"], row["c"]) for row in back] == want
    assert all(not isinstance(row["c"], float) for row in back)


@given(ROWS)
def test_two_foreign_readers_read_csv_back(rows: list[tuple[str | None, float | None, int | None]]) -> None:
    written = text(table_of(rows), "csv")
    back = list(csv.reader(io.StringIO(written, newline="")))
    assert back[0] == ["a", "b", "c"]
    assert [row[0] for row in back[1:]] == [a or "" for a, _, _ in rows]
    options = arrow_csv.ConvertOptions(
        column_types={"a": pa.string(), "b": pa.float64(), "c": pa.int64()},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    table = arrow_csv.read_csv(io.BytesIO(written.encode()), convert_options=options, parse_options=parse)
    assert str(table.to_pylist()) == str(table_of(rows).to_pylist())


def table_of(rows: list[tuple[str | None, float | None, int | None]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.string(), pa.float64(), pa.int64())
    return pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["a", "b", "c"])
