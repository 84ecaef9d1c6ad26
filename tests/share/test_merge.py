"""Stores of one model become one, which answers for the examples of each as that did; others are refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.cli import group
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.annotate import annotate_labels
from attnstore.job.refresh import refresh
from attnstore.share.merge import merge
from tests.conftest import SENTENCES
from tests.share.made import answers, column, maker, maps_of, same, tree

OTHERS = ("a lamp burned in the window .", "nobody came", "the gardener repaired two clocks .")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge")


@pytest.fixture(scope="module")
def one(place: Path) -> Path:
    return maker(place)("one.attn", corpus__licence="CC BY 4.0")


@pytest.fixture(scope="module")
def two(place: Path) -> Path:
    return maker(place)("two.attn", OTHERS, seed=5, corpus__licence="CC0 1.0")


@pytest.fixture(scope="module")
def both(one: Path, two: Path, place: Path) -> Path:
    return merge([one, two], place / "both.attn")


def test_a_merged_store_is_sound_and_holds_all(both: Path) -> None:
    assert verify(both, deep=True) == []
    with attnstore.open(both) as store:
        assert store.info.n_examples == len(SENTENCES) + len(OTHERS)
        assert store.info.corpus["licence"] == "CC BY 4.0; CC0 1.0"
        found = store.sql("select example, text from examples order by example").to_arrow().to_pylist()
        assert [row["text"] for row in found] == [*SENTENCES, *OTHERS]
        assert [row["example"] for row in found] == list(range(len(found)))


def test_the_examples_of_each_source_answer_as_there(one: Path, two: Path, both: Path) -> None:
    # Example numbers differ in the second one: only answers without them are compared.
    same(answers(one), answers(both, f"example < {len(SENTENCES)}"))
    mine, whole = answers(two), answers(both, f"example >= {len(SENTENCES)}")
    numbered = [name for name, table in mine.items() if "example" in table.schema.names]
    for name in numbered:
        assert mine.pop(name).num_rows == whole.pop(name).num_rows
    same(mine, whole)


def test_maps_are_those_of_the_sources(one: Path, two: Path, both: Path) -> None:
    assert maps_of(both) == [*maps_of(one), *maps_of(two)]


def test_shards_are_copied_as_files(one: Path, two: Path, both: Path) -> None:
    first = {name for name in tree(one / "segments") if "maps.zarr" in name}
    copied = tree(both / "segments")
    assert all(copied[name] == tree(one / "segments")[name] for name in first)


def test_store_json_names_the_sources(one: Path, two: Path, both: Path) -> None:
    told = json.loads((both / "store.json").read_bytes())["made_from"]
    for path, found in zip((one, two), told, strict=True):
        with attnstore.open(path) as store:
            assert found["store_id"] == store.info.store_id
            assert found["content_hash"] == store.snapshot.content_hash
            assert found["licence"] == store.info.corpus["licence"]


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"keep__precision": "exact"}, "precision"),
        ({"keep__maps": "topk:2"}, "kept"),
        ({"keep__facts": "full"}, "facts"),
        ({"model__name": "another"}, "model"),
    ],
)
def test_stores_that_were_made_otherwise_are_refused_by_what_differs(
    one: Path, tmp_path: Path, keys: dict[str, Any], what: str
) -> None:
    other = maker(tmp_path)("other.attn", OTHERS, **keys)
    before = tree(other)
    with pytest.raises(BadInput, match=f"differ in {what}"):
        merge([one, other], tmp_path / "both.attn")
    assert not (tmp_path / "both.attn").exists()
    assert tree(other) == before


def test_one_store_twice_is_refused(one: Path, tmp_path: Path) -> None:
    shutil.copytree(one, tmp_path / "copy.attn")
    with pytest.raises(BadInput, match="hold the same"):
        merge([one, tmp_path / "copy.attn"], tmp_path / "both.attn")


def test_a_single_store_is_refused(one: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="1 stores"):
        merge([one], tmp_path / "both.attn")


def test_what_only_one_source_has_is_carried_or_told(one: Path, two: Path, tmp_path: Path) -> None:
    first = shutil.copytree(one, tmp_path / "first.attn")
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(f'{{"name": "s{number}", "label": "x"}}\n' for number in range(7)))
    annotate_labels(first, labels)
    refresh(first, "offset_facts", {"reach": 3})
    refresh(first, "head_facts", {"eps": 0.5})
    made = merge([first, two], tmp_path / "both.attn")
    assert verify(made, deep=True) == []
    assert column(made, "examples", "label") == ["x"] * 7 + [None] * 3
    told = json.loads((made / "store.json").read_bytes())["left_out"]["tables"]
    assert told == ["head_facts", "offset_facts"]
    # Facts that were left out are computed from the maps.
    with attnstore.open(made) as store, attnstore.open(one) as before:
        mine = store.ask("heads/entropy", where="example < 7").to_arrow()
        yours = before.ask("heads/entropy").to_arrow()
        for name in mine.schema.names:
            assert mine[name].to_pylist() == pytest.approx(yours[name].to_pylist(), rel=1e-3)


def test_facts_that_all_sources_computed_alike_are_carried(one: Path, two: Path, tmp_path: Path) -> None:
    paths = [Path(shutil.copytree(path, tmp_path / path.name)) for path in (one, two)]
    for path in paths:
        refresh(path, "offset_facts", {"reach": 3})
    made = merge(paths, tmp_path / "both.attn")
    assert verify(made, deep=True) == []
    with attnstore.open(made) as store:
        assert store.engine.files.parameters("offset_facts") == {"reach": 3}
        assert (
            store.sql("select count(distinct example) as n from stored.offset_facts").to_arrow()["n"][0].as_py() == 10
        )


def test_the_command_merges(one: Path, two: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    ran = CliRunner().invoke(group, ["merge", str(one), str(two), str(tmp_path / "both.attn")])
    assert ran.exit_code == 0, ran.output
    assert "10 examples of 2 stores" in ran.stderr
    assert CliRunner().invoke(group, ["merge", str(one), str(tmp_path / "again.attn")]).exit_code == 2
