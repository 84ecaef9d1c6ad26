"""Tests of patterns that a person or a classifier gives to maps."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnstore.errors import BadInput
from attnstore.job.annotate_patterns import annotate_patterns
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, make_store, random_examples

HEADER = "example,layer,head,pattern,annotator\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store(tmp_path / "s.attn", random_examples(1, (4, 5, 6), {"encoder": ENCODER}))


def labelled(folder: Path, rows: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_text(HEADER + rows)
    return path


def stored(store: Path) -> list[tuple[object, ...]]:
    with open_store(store) as opened:
        found = opened.sql("select example, layer, head, pattern, annotator from pattern_labels order by all")
        return [tuple(row.values()) for row in found]


def test_maps_are_named_by_the_name_or_the_number_of_their_example(store: Path, tmp_path: Path) -> None:
    done = annotate_patterns(store, labelled(tmp_path, "e1,0,2,vertical,ann\n2,1,0,block,ann\nnobody,0,0,block,ann\n"))
    assert stored(store) == [(1, 0, 2, "vertical", "ann"), (2, 1, 0, "block", "ann")]
    assert done.examples == 2
    assert done.unmatched == ("nobody",)


def test_the_shares_of_own_labels_are_counted_by_label(store: Path, tmp_path: Path) -> None:
    rows = "e0,0,0,vertical,ann\ne0,0,1,vertical,ann\ne0,1,0,block,ann\ne0,1,1,block,bea\n"
    annotate_patterns(store, labelled(tmp_path, rows))
    with open_store(store) as opened:
        found = opened.ask("patterns/shares", labels="own", by="all", annotator="ann").to_arrow().to_pylist()
    assert [(row["pattern"], row["share"], row["n"]) for row in found] == [("block", 1 / 3, 3), ("vertical", 2 / 3, 3)]


def test_an_annotator_replaces_only_what_was_given_before_for_the_same_examples(store: Path, tmp_path: Path) -> None:
    annotate_patterns(store, labelled(tmp_path, "e0,0,0,vertical,ann\ne0,0,0,block,bea\ne1,0,0,block,ann\n"))
    annotate_patterns(store, labelled(tmp_path, "e0,1,1,diagonal,ann\n"))
    assert stored(store) == [(0, 0, 0, "block", "bea"), (0, 1, 1, "diagonal", "ann"), (1, 0, 0, "block", "ann")]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("e0,2,0,block,a\n", "line 2: layer '2'; expected 0 to 1"),
        ("e0,0,x,block,a\n", "line 2: head 'x'; expected 0 to 2"),
        ("e0,0,0,,a\n", "line 2: no pattern"),
        ("e0,0,0,  ,a\n", "line 2: no pattern"),
        ("e0,0,0,block,a\ne0,0,0,vertical,a\n", "line 3: the map of layer 0, head 0 again"),
        ("nobody,0,0,block,a\n", "no row for an example of the store"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_and_the_store_stays(
    store: Path, tmp_path: Path, rows: str, complaint: str
) -> None:
    with pytest.raises(BadInput) as caught:
        annotate_patterns(store, labelled(tmp_path, rows))
    assert complaint in str(caught.value)
    assert stored(store) == []


def test_a_parquet_table_gives_the_same_rows_and_patterns_lose_their_blanks(store: Path, tmp_path: Path) -> None:
    row = {"example": "e1", "layer": 0, "head": 2, "pattern": " vertical ", "annotator": "ann", "more": 1}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "labels.parquet")
    annotate_patterns(store, tmp_path / "labels.parquet")
    assert stored(store) == [(1, 0, 2, "vertical", "ann")]


def test_a_missing_column_is_named(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("example,layer,head\ne0,0,0\n")
    with pytest.raises(BadInput, match="no column 'pattern'"):
        annotate_patterns(store, path)
