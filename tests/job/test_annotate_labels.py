"""Labels reach the examples that a table or JSON Lines file names, with or without their texts."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attnstore.errors import BadInput
from attnstore.job.annotate import annotate_labels
from attnstore.job.run import ingest
from tests.conftest import arrays_recipe
from tests.job.annotating import table


def labelled(folder: Path, ending: str, rows: list[dict[str, str]]) -> Path:
    """A file of labels, `labels` with the ending."""
    path = folder / f"labels{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        mark = {".csv": ",", ".tsv": "\t"}[ending]
        path.write_text("\n".join(mark.join(cells) for cells in [list(rows[0]), *(row.values() for row in rows)]))
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("key", ["name", "id"])
def test_labels_need_a_name_only(tmp_path: Path, exact: Path, ending: str, key: str) -> None:
    rows = [{key: name, "label": f"label of {name}"} for name in ("s3", "s0", "other")]
    done = annotate_labels(exact, labelled(tmp_path, ending, rows))
    assert (done.examples, done.unmatched) == (2, ("other",))
    found = {row["name"]: row["label"] for row in table(exact, "examples") if row["label"] is not None}
    assert found == {"s0": "label of s0", "s3": "label of s3"}


def test_a_name_that_looks_like_file_and_line_counts_and_labels_no_other_example_of_the_text(tmp_path: Path) -> None:
    lines = [{"name": f"l:{n}", "text": "rain", "tokens": ["rain"], "words": [], "maps": "m.npz"} for n in (1, 2)]
    np.savez(tmp_path / "m.npz", encoder=np.ones((1, 1, 1, 1), np.float32))
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ingest(arrays_recipe(tmp_path / "corpus.jsonl"), tmp_path / "s.attn").close()
    (tmp_path / "l.jsonl").write_text('{"name": "l:1", "label": "x"}')
    assert annotate_labels(tmp_path / "s.attn", tmp_path / "l.jsonl").examples == 1
    assert [(row["name"], row["label"]) for row in table(tmp_path / "s.attn", "examples")] == [
        ("l:1", "x"),
        ("l:2", None),
    ]


@pytest.mark.parametrize(("ending", "line"), [(".csv", 2), (".jsonl", 1), (".parquet", 1)])
def test_labels_without_name_and_text_are_told_what_annotate_takes(
    tmp_path: Path, exact: Path, ending: str, line: int
) -> None:
    path = labelled(tmp_path, ending, [{"gold": "x", "label": "y"}])
    with pytest.raises(BadInput, match="neither a name nor a text, in the fields 'gold', 'label'") as caught:
        annotate_labels(exact, path)
    assert f"{path}, line {line}:" in str(caught.value)
    assert "select name, text from examples" in caught.value.remedy
    assert "columns" not in str(caught.value)
