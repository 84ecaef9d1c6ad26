"""Tests of croissant.json against the validator and reader of Croissant itself."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnstore.format.commit import describe
from attnstore.format.manifest import load
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.share.croissant import croissant, croissant_text
from attnstore.store.contents import Contents, read_contents
from tests.conftest import SENTENCES, arrays_recipe, write_arrays

pytest.importorskip("mlcroissant")

# In a process of its own: its RDF library warns of itself, and what it keeps in the home folder is of this test alone.
READ = """
import itertools, json, sys
import mlcroissant
found = mlcroissant.Dataset(jsonld=sys.argv[1])
report = found.metadata.ctx.issues.report()
def plain(value):
    return value.decode() if isinstance(value, bytes) else value
rows = {
    table: [{name: plain(value) for name, value in row.items()} for row in itertools.islice(found.records(table), 20)]
    for table in sys.argv[2:]
}
json.dump({"report": report, "rows": rows}, sys.stdout, default=lambda value: value.tolist())
"""


def read(store: Path, tmp_path: Path, *tables: str) -> dict[str, Any]:
    """What mlcroissant says of the description of a store, and the first records of these tables."""
    (store / "croissant.json").write_text(croissant_text(read_contents(store)), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-c", READ, str(store / "croissant.json"), *tables],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"HOME": str(tmp_path), "PATH": ""},
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def records(store: Path, tmp_path: Path, *tables: str) -> dict[str, list[dict[str, Any]]]:
    found = read(store, tmp_path, *tables)
    assert found["report"] == ""
    return {
        table: [{name.partition("/")[2]: value for name, value in row.items()} for row in rows]
        for table, rows in found["rows"].items()
    }


@pytest.mark.slow
def test_the_validator_finds_nothing_and_reads_the_tables(make_store: Callable[..., Path], tmp_path: Path) -> None:
    store = make_store()
    found = records(store, tmp_path, "examples", "tokens", "token_facts")
    assert [row["text"] for row in found["examples"]] == list(SENTENCES)
    truth = pq.read_table(store / "segments/000000/tokens.parquet").slice(0, 20).to_pylist()
    assert found["tokens"] == truth
    facts = pq.read_table(store / "segments/000000/token_facts.parquet")
    assert [row["argmax"] for row in found["token_facts"]] == facts["argmax"].to_pylist()[:20]
    np.testing.assert_array_equal(
        [row["entropy_nats"] for row in found["token_facts"]], facts["entropy_nats"].to_pylist()[:20]
    )


@pytest.mark.slow
def test_a_table_of_many_segments_is_a_set_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 1)
    corpus = write_arrays(tmp_path / "corpus", SENTENCES[:3])
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    refresh(tmp_path / "s", "head_facts", {"eps": "0.01"})
    sources = {one["name"]: one["field"][0]["source"] for one in croissant(read_contents(tmp_path / "s"))["recordSet"]}
    assert sources["examples"]["fileSet"] == {"@id": "examples-files"}
    assert sources["head_facts"]["fileObject"] == {"@id": "additions/000001-head-facts/head_facts.parquet"}
    found = records(tmp_path / "s", tmp_path, "examples", "head_facts")
    assert sorted(row["text"] for row in found["examples"]) == sorted(SENTENCES[:3])
    assert len(found["head_facts"]) == 3 * 2 * 3


@pytest.mark.slow
def test_hostile_texts_stay_texts(make_store: Callable[..., Path], tmp_path: Path) -> None:
    text = '"}], "@id": "http://e.example" <script>\u2028\n'
    store = make_store(title=text, corpus__licence=text)
    found = read(store, tmp_path, "examples")
    assert found["report"] == ""
    assert len(found["rows"]["examples"]) == len(SENTENCES)


def test_each_file_is_named_with_its_hash(tiny_store: Path) -> None:
    files = [one for one in croissant(read_contents(tiny_store))["distribution"] if one["@type"] == "cr:FileObject"]
    assert {"store.json", "snapshots/00000001.json", "segments/000000/tokens.parquet"} <= {one["@id"] for one in files}
    for one in files:
        described = describe(tiny_store / one["contentUrl"], "")
        assert (one["sha256"], one["contentSize"]) == (described.sha256, f"{described.bytes} B")


def test_the_maps_are_a_set_of_files_with_shape_and_axes(tiny_store: Path) -> None:
    (maps,) = (one for one in croissant(read_contents(tiny_store))["distribution"] if one["@id"] == "maps")
    assert maps["encodingFormat"] == "application/vnd.zarr"
    assert "encoder [2, 3, cells]" in maps["description"]
    assert "[layer, head, cell]" in maps["description"]
    assert any(path.is_file() for path in tiny_store.glob(maps["includes"][0]))


def test_every_column_has_a_type_and_a_meaning(tiny_store: Path) -> None:
    for records in croissant(read_contents(tiny_store))["recordSet"]:
        schema = pq.read_schema(tiny_store / "segments/000000" / f"{records['name']}.parquet")
        assert [one["name"] for one in records["field"]] == schema.names
        for field in records["field"]:
            kind = str(schema.field(field["name"]).type)
            assert field.get("isArray", False) == kind.startswith("list")
            names = {"int": "sc:Integer", "string": "sc:Text", "bool": "sc:Boolean", "float": "sc:Float"}
            names |= {"double": "sc:Float"}
            (expected,) = {form for name, form in names.items() if name in kind}
            assert field["dataType"] == expected
            assert len(field["description"]) > 3


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ("CC BY-SA 3.0", "https://spdx.org/licenses/CC-BY-SA-3.0"),
        ("Apache-2.0", "https://spdx.org/licenses/Apache-2.0"),
        ("", "not stated"),
        ("ask us", "ask us"),
    ],
)
def test_the_licence_is_told(tiny_store: Path, stated: str, told: str) -> None:
    contents = read_contents(tiny_store)
    info = replace(contents.info, corpus={**contents.info.corpus, "licence": stated})
    assert croissant(Contents(contents.root, info, contents.snapshot))["license"] == told


def test_a_citation_pins_the_content(tiny_store: Path) -> None:
    found = croissant(read_contents(tiny_store))
    (snapshot,) = tiny_store.glob("snapshots/*.json")
    assert load(snapshot)["content_hash"] in found["citeAs"]
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.1"
