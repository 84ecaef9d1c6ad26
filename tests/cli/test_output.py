"""An answer leaves in the form that is asked for, whole, and reads back as what the library gives."""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.cli.options import FORMATS
from attnstore.errors import BadInput, NoSpace
from attnstore.show import formats
from tests.cli.running import good, invoke

STATEMENT = """
    select example, layer, head, cls_sum, previous_sum, 'a,"b' || chr(10) || '|ö' as text, null as nothing,
        example > 1 as flag
    from head_facts where example < 3 order by all
"""


@pytest.fixture(scope="module")
def expected(tiny_store: Path) -> pa.Table:
    with attnstore.open(tiny_store) as store:
        return store.sql(STATEMENT).to_arrow()


def parsed_csv(data: bytes) -> list[dict[str, Any]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))


def test_every_form_is_one_that_can_be_written() -> None:
    assert set(FORMATS) == set(formats.FORMATS)


def test_csv_reads_back(tiny_store: Path, expected: pa.Table) -> None:
    found = parsed_csv(good("sql", tiny_store, STATEMENT, "--format", "csv").stdout_bytes)
    assert [float(row["cls_sum"]) for row in found] == expected["cls_sum"].to_pylist()  # every digit is there
    assert found[0]["text"] == 'a,"b\n|ö'
    assert {row["nothing"] for row in found} == {""}
    assert [row["flag"] == "true" for row in found] == expected["flag"].to_pylist()


def test_json_reads_back(tiny_store: Path, expected: pa.Table) -> None:
    found = json.loads(good("sql", tiny_store, STATEMENT, "--format", "json").stdout_bytes)
    assert found == expected.to_pylist()


def test_parquet_and_arrow_read_back_with_their_types(tiny_store: Path, expected: pa.Table) -> None:
    data = good("sql", tiny_store, STATEMENT, "--format", "parquet").stdout_bytes
    parquet = pq.read_table(io.BytesIO(data))
    assert parquet.drop_columns("nothing").equals(expected.drop_columns("nothing"))
    stream = pa.ipc.open_stream(good("sql", tiny_store, STATEMENT, "--format", "arrow").stdout_bytes)
    assert stream.read_all().equals(expected)


def test_markdown_reads_back(tiny_store: Path, expected: pa.Table) -> None:
    lines = good("sql", tiny_store, STATEMENT, "--format", "markdown").stdout.splitlines()
    cells = [[cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")] for line in lines]
    assert cells[0] == ["example", "layer", "head", "cls_sum", "previous_sum", "text", "nothing", "flag"]
    assert len(lines) == 2 + len(expected)  # a line end in a cell does not break its row
    for row, value in zip(cells[2:], expected["cls_sum"].to_pylist(), strict=True):
        assert math.isclose(float(row[3]), value, abs_tol=5e-4)


def test_a_table_for_the_eye_has_a_line_for_each_row(tiny_store: Path, expected: pa.Table) -> None:
    lines = good("sql", tiny_store, STATEMENT).stdout.splitlines()
    assert lines[0].split()[:4] == ["example", "layer", "head", "cls_sum"]
    assert [int(line.split()[0]) for line in lines[2:]] == expected["example"].to_pylist()


def test_only_a_table_for_the_eye_leaves_rows_out(tiny_store: Path) -> None:
    statement = "select range as n from range(10005)"
    assert good("sql", tiny_store, statement).stdout.endswith("… 5 of 10,005 rows left out\n")
    assert len(parsed_csv(good("sql", tiny_store, statement, "--format", "csv").stdout_bytes)) == 10_005


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "make",
    [
        lambda store: ["sql", store, STATEMENT],
        lambda store: ["ask", "heads/entropy", store],
        lambda store: ["info", store],
        lambda store: ["questions"],
        lambda store: ["questions", "heads/entropy"],
        lambda store: ["verify", store],
        lambda store: ["doctor"],
    ],
    ids=["sql", "ask", "info", "questions", "question", "verify", "doctor"],
)
def test_a_file_holds_what_standard_output_would(
    tiny_store: Path, tmp_path: Path, form: str, make: Callable[[Path], list[Any]]
) -> None:
    words = make(tiny_store)
    shown = good(*words, "--format", form)
    written = good(*words, "--format", form, "-o", tmp_path / "answer")
    assert written.stdout_bytes == b""
    # A sound store has nothing to show, but a file that is asked for is written.
    expected = shown.stdout_bytes or (tmp_path / "answer").read_bytes()
    assert (tmp_path / "answer").read_bytes() == expected != b""


def test_a_dash_is_standard_output(tiny_store: Path) -> None:
    assert good("info", tiny_store, "-o", "-", "--format", "csv").stdout.startswith("what,value\n")


@pytest.mark.parametrize("command", ["info", "show"])
def test_a_file_in_no_folder_is_refused_before_the_answer_is_computed(
    tiny_store: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnstore.store.store.open", lambda *args, **kwargs: pytest.fail("the store was opened"))
    more = ["0", "--layer", 0, "--head", 0] if command == "show" else []
    for target in (tmp_path / "none" / "x.csv", tmp_path):
        result = invoke(command, tiny_store, *more, "-o", target)
        assert result.exit_code == 2
        assert str(target if target == tmp_path else target.parent) in result.stderr


def test_a_file_that_cannot_be_written_is_named(tiny_store: Path, tmp_path: Path) -> None:
    target = tmp_path / ("x" * 300)
    result = invoke("info", tiny_store, "-o", target)
    assert isinstance(result.exception, BadInput)
    assert str(target) in str(result.exception)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_named(tiny_store: Path) -> None:
    result = invoke("info", tiny_store, "-o", "/dev/full")
    assert isinstance(result.exception, NoSpace)


def test_bytes_are_not_thrown_at_a_terminal(tiny_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.cli.options.is_terminal", lambda target=None: True)
    result = invoke("info", tiny_store, "--format", "parquet")
    assert result.exit_code == 2
    assert "add -o FILE" in result.stderr
    assert invoke("info", tiny_store, "--format", "csv").exit_code == 0
