"""This file proves that tables give their rows by named columns, whatever the file format."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Skipped

COLUMNS = {"text": "sentence1", "second": "sentence2", "label": "gold"}


def write(tmp_path: Path, name: str, content: str) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def load(path: Path, **columns: str) -> list[Example | Skipped]:
    return list(read(Corpus("table", (path,), columns=columns)))


def rows(path: Path, **columns: str) -> list[tuple[str, str, str | None, str | None, str]]:
    found = []
    for item in load(path, **columns):
        assert isinstance(item, Example)
        found.append((item.name, item.text, item.second, item.label, item.where))
    return found


def test_csv_tsv_and_parquet_give_the_same_examples(tmp_path: Path) -> None:
    csv = write(tmp_path, "t.csv", "id,sentence1,gold,sentence2\na,One.,0,Two.\nb,Drei.,1,Vier.\n")
    tsv = write(tmp_path, "t.tsv", "id\tsentence1\tgold\tsentence2\na\tOne.\t0\tTwo.\nb\tDrei.\t1\tVier.\n")
    parquet = tmp_path / "t.parquet"
    pq.write_table(
        pa.table(
            {
                "id": ["a", "b"],
                "x": [[1], [2]],
                "sentence1": ["One.", "Drei."],
                "gold": [0, 1],
                "sentence2": ["Two.", "Vier."],
            }
        ),
        parquet,
    )
    expected = [("a", "One.", "Two.", "0"), ("b", "Drei.", "Vier.", "1")]
    for path, first in ((csv, 2), (tsv, 2), (parquet, 1)):
        assert [row[:4] for row in rows(path, **COLUMNS)] == expected
        assert [row[4] for row in rows(path, **COLUMNS)] == [f"{path.name}:{first}", f"{path.name}:{first + 1}"]


def test_a_quoted_csv_field_holds_commas_quotes_and_line_ends_and_the_next_row_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", '\ufefftext,label\r\n"He said ""no"", then\r\nleft.",x\r\n\r\nNext.,y\r\n')
    assert rows(path) == [
        ("t:2", 'He said "no", then\nleft.', None, "x", "t.csv:2"),
        ("t:5", "Next.", None, "y", "t.csv:5"),
    ]


def test_a_lone_quote_in_a_tsv_is_text(tmp_path: Path) -> None:
    path = write(tmp_path, "t.tsv", 'text\tlabel\n"So it begins\tx\nand goes on\ty\n')
    assert [row[1] for row in rows(path)] == ['"So it begins', "and goes on"]


def test_an_empty_cell_of_text_is_skipped_and_an_empty_label_is_none(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "text,label\n,x\nA.,\n")
    skipped, example = load(path)
    assert skipped == Skipped("t:2", "its text is empty", "t.csv:2")
    assert isinstance(example, Example)
    assert example.label is None


def test_a_parquet_null_text_is_skipped_and_rows_are_counted_over_batches(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"text": [None, *["A."] * 3000]}), path)
    found = load(path)
    assert found[0] == Skipped("t:1", "its text is empty", "t.parquet:1")
    assert found[-1].where == "t.parquet:3001"


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet"])
def test_a_missing_column_names_the_nearest_and_what_is_there(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pq.write_table(pa.table({"sentence": ["A."], "gold": ["x"]}), tmp_path / name)
    else:
        mark = "," if name.endswith("csv") else "\t"
        write(tmp_path, name, f"sentence{mark}gold\nA.{mark}x\n")
    with pytest.raises(BadInput) as caught:
        load(tmp_path / name, text="sentense")
    assert caught.value.doing.endswith(f"{name}, line 1")
    assert caught.value.found == "there is no 'sentense' for the field 'text', only 'gold', 'sentence'"
    assert caught.value.remedy == "Did you mean 'sentence'?"
    with pytest.raises(BadInput, match=r"Name the one that holds it: columns\.text"):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "line", "found"),
    [
        ("t.csv", "text,label\nA.,x\nB.,y,z\n", 3, "3 fields"),
        ("t.csv", "text,text\nA.,x\n", 1, "the columns 'text', 'text'"),
        ("t.csv", 'text,label\nA.,x\n"B.,y\nC.,z\n', 3, "unexpected end of data"),
        ("t.csv", 'text,label\n"A."b,x\n', 2, "expected after"),
        ("t.tsv", "text\tlabel\nA.\n", 2, "1 fields"),
        ("t.csv", "text,label\n", 1, "nothing to read"),
        ("t.parquet", "text", 1, "Parquet"),
    ],
)
def test_a_table_that_does_not_parse_is_an_error_with_its_line(
    tmp_path: Path, name: str, content: str, line: int, found: str
) -> None:
    with pytest.raises(BadInput) as caught:
        load(write(tmp_path, name, content))
    assert caught.value.doing.endswith(f"{name}, line {line}")
    assert found in caught.value.found


def test_another_ending_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'\.xlsx'; expected \.csv, \.tsv, \.parquet"):
        load(write(tmp_path, "t.xlsx", "x"))
