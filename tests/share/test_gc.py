"""Collecting removes what nobody can need and is old, and never anything else."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.errors import BadInput, Damaged, NotAStore
from attnstore.format import names
from attnstore.format.commit import commit, latest, publish, published, seal, snapshots, stage
from attnstore.format.verify import verify
from attnstore.job import parts
from attnstore.job import plan as plan_module
from attnstore.job.annotate import annotate_labels, annotate_words
from attnstore.share.collect import gc, replaced
from attnstore.share.tags import tag, untag
from attnstore.store.contents import read_contents
from attnstore.store.parquet_files import ParquetFiles
from tests.cli.running import good, invoke
from tests.conftest import arrays_recipe
from tests.job.annotating import NEW, jsonl, table


def age(root: Path, hours: float) -> None:
    """Make everything in a folder, and the folder, as old as that."""
    then = time.time() - hours * 3600
    for path in (root, *root.rglob("*")):
        os.utime(path, (then, then), follow_symlinks=False)


def content(root: Path) -> dict[str, bytes]:
    """Every file by its path."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def paths(found: list[Any]) -> list[str]:
    return [one.path for one in found]


@pytest.fixture
def store(tiny_store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_store, tmp_path / "s.attn"))


@pytest.fixture
def labelled(store: Path, tmp_path: Path) -> Path:
    """A store whose labels were given twice: snapshots 1 to 3, and the first addition superseded. Two days old."""
    for label in "ab":
        (tmp_path / "l.csv").write_text(f"name,text,label\ns0,x,{label}\n")
        annotate_labels(store, tmp_path / "l.csv")
    age(store, 48)
    return store


FIRST, SECOND = "additions/000001-labels", "additions/000002-labels"


def test_a_store_of_which_all_is_needed_stays_as_it_is(store: Path) -> None:
    before = content(store)
    for hours in (24, 0):
        assert gc(store, hours) == []
    assert content(store) == before


def test_leftovers_of_writers_go_once_they_are_old(store: Path) -> None:
    for folder in ("segments", "additions", "snapshots", "tags", ""):
        (store / folder / ".staging-000001-ab/deep").mkdir(parents=True)
        (store / folder / ".staging-000001-ab/deep/file").write_bytes(b"123")
        (store / folder / ".staging-file-cd").write_bytes(b"12345")
    before = content(store)
    assert gc(store, 1) == []
    assert content(store) == before
    age(store, 2)
    found = gc(store, 1)
    assert sorted((one.bytes, one.why) for one in found) == [
        (size, "left by a writer that did not end") for size in (3,) * 5 + (5,) * 5
    ]
    assert list(store.rglob(".staging-*")) == []
    assert verify(store) == []


def test_a_leftover_in_which_one_file_is_young_is_still_written(store: Path) -> None:
    staging = stage(store, "segments/000001")
    (staging / "old").write_bytes(b"1")
    age(store, 48)
    (staging / "old").write_bytes(b"12")
    assert gc(store) == []
    assert (staging / "old").read_bytes() == b"12"


def test_what_comes_from_the_future_is_new(store: Path) -> None:
    stage(store, "segments/000001")
    age(store, -1)
    assert gc(store, 0) == []


def test_a_link_is_removed_and_not_what_it_leads_to(store: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_bytes(b"1")
    (store / "segments/.staging-000009-ab").symlink_to(outside)
    assert paths(gc(store, 0)) == ["segments/.staging-000009-ab"]
    assert (outside / "mine").read_bytes() == b"1"


def test_old_snapshots_go_but_for_the_newest_and_tagged_ones(labelled: Path) -> None:
    tag(labelled, "paper", 1)
    found = gc(labelled)
    assert paths(found) == ["snapshots/00000002.json"]
    assert found[0].why == "a snapshot that is neither the newest nor tagged"
    assert snapshots(labelled) == [1, 3]
    # The newest lists the superseded addition as well: nobody asked to drop it.
    assert published(labelled, names.ADDITIONS) == ["000001-labels", "000002-labels"]
    untag(labelled, "paper")
    assert paths(gc(labelled)) == ["snapshots/00000001.json"]
    assert table(labelled, "examples")[0]["label"] == "b"


def test_a_snapshot_is_as_young_as_the_one_that_followed_it(labelled: Path) -> None:
    os.utime(labelled / "snapshots/00000003.json")
    assert paths(gc(labelled)) == ["snapshots/00000001.json"]
    assert snapshots(labelled) == [2, 3]  # readers may have opened 2 a moment ago


def test_what_is_superseded_goes_after_the_snapshots_that_list_it(labelled: Path) -> None:
    before = table(labelled, "examples")
    # The new snapshot makes 3 young, which lists the addition; 1 and 2 are old.
    assert paths(gc(labelled, superseded=True)) == ["snapshots/00000001.json", "snapshots/00000002.json"]
    assert latest(labelled).dropped == ("000001-labels",)
    assert [one.id for one in latest(labelled).additions] == ["000002-labels"]
    assert (labelled / FIRST).is_dir()
    with attnstore.open(labelled, snapshot=3) as opened:
        assert len(opened.contents.additions) == 2
    age(labelled, 48)
    found = gc(labelled)
    assert paths(found) == ["snapshots/00000003.json", FIRST]
    assert found[1].why == "an addition that was superseded"
    assert published(labelled, names.ADDITIONS) == ["000002-labels"]
    assert table(labelled, "examples") == before
    assert verify(labelled, deep=True) == []


def test_what_a_tagged_snapshot_lists_stays(labelled: Path) -> None:
    tag(labelled, "paper", 2)
    gc(labelled, 0, superseded=True)
    assert (labelled / FIRST).is_dir()
    assert table(labelled, "examples", tag="paper")[0]["label"] == "a"
    untag(labelled, "paper")
    assert FIRST in paths(gc(labelled, 0))


def test_annotating_goes_on_beside_what_was_dropped(labelled: Path, tmp_path: Path) -> None:
    gc(labelled, superseded=True)
    (tmp_path / "l.csv").write_text("name,text,label\ns1,x,c\n")
    assert annotate_labels(labelled, tmp_path / "l.csv").addition == "000003-labels"
    newest = latest(labelled)
    assert newest.dropped == ("000001-labels",)
    assert [one.id for one in newest.additions] == ["000002-labels", "000003-labels"]
    assert [row["label"] for row in table(labelled, "examples")][:2] == ["b", "c"]
    gc(labelled, 0, superseded=True)
    assert [row["label"] for row in table(labelled, "examples")][:2] == ["b", "c"]
    # What is no longer there is no longer named, so that a name may be given again.
    (tmp_path / "l.csv").write_text("name,text,label\ns1,x,d\n")
    annotate_labels(labelled, tmp_path / "l.csv")
    assert latest(labelled).dropped == ()


def test_a_snapshot_that_drops_nothing_does_not_say_so(labelled: Path) -> None:
    assert b"dropped" not in (labelled / "snapshots/00000003.json").read_bytes()
    gc(labelled, superseded=True)
    assert b'"dropped"' in (labelled / "snapshots/00000004.json").read_bytes()


def test_only_what_is_replaced_as_a_whole_is_superseded(store: Path, tmp_path: Path) -> None:
    def labels(label: str) -> None:
        (tmp_path / "l.csv").write_text(f"name,text,label\ns0,x,{label}\n")
        annotate_labels(store, tmp_path / "l.csv")

    labels("a")
    annotate_words(store, jsonl(tmp_path / "w.jsonl", NEW))  # examples, tokens, words, …
    assert replaced(store) == ("000001-labels",)
    labels("b")  # examples alone
    assert replaced(store) == ("000001-labels",)
    annotate_words(store, jsonl(tmp_path / "w.jsonl", {"s0": NEW["s0"]}))
    assert replaced(store) == ("000001-labels", "000002-words", "000003-labels")
    before = in_force(store)
    everything = {name: table(store, name) for name in ("examples", "tokens", "words", "word_facts", "links")}
    gc(store, 0, superseded=True)
    assert in_force(store) == before
    assert {name: table(store, name) for name in everything} == everything
    assert published(store, names.ADDITIONS) == ["000004-words"]


def in_force(store: Path) -> dict[str, list[str]]:
    """The files of every table, as readers choose them."""
    sources = ParquetFiles(read_contents(store)).sources
    return {name: [f"{unit.folder}/{file.path}" for unit, file in found] for name, found in sources.items()}


def add(root: Path, name: str, files: list[str], **facts: Any) -> None:
    """Publish an addition of files that hold nothing in particular."""
    staging = stage(root, f"additions/{name}")
    for file in files:
        (staging / file).parent.mkdir(parents=True, exist_ok=True)
        (staging / file).write_bytes(b"x")
    seal(staging, f"additions/{name}", facts, {})
    assert publish(staging, root, f"additions/{name}")


def test_segments_and_parts_replace_their_own_and_maps_nothing(store: Path) -> None:
    add(store, "a.000000", ["identity_facts.parquet"], scope="segment", segment="000000")
    add(store, "b.000000", ["identity_facts.parquet"], scope="segment", segment="000001")
    add(store, "c.000000", ["identity_facts.parquet"], scope="part", part="000000")
    add(store, "d.000000", ["maps.zarr/x"], scope="segment", segment="000000")
    add(store, "e.000000", ["maps.zarr/x"], scope="segment", segment="000000")
    add(store, "f.000000", [], scope="store")
    commit(store, latest(store).store_id)
    assert replaced(store) == ()
    add(store, "g.000000", ["identity_facts.parquet"], scope="segment", segment="000000")
    commit(store, latest(store).store_id)
    assert replaced(store) == ("a.000000",)
    add(store, "h.000000", ["identity_facts.parquet"], scope="store")
    commit(store, latest(store).store_id)
    assert replaced(store) == ("a.000000", "b.000000", "c.000000", "g.000000")


def test_finished_work_that_no_snapshot_lists_is_no_garbage(
    arrays_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)
    root = tmp_path / "s.attn"
    parts.plan(arrays_recipe(arrays_corpus), root)
    parts.run(root, segments=(0, 1))
    age(root, 1000)
    assert gc(root, 24, superseded=True) == []
    parts.run(root)
    parts.finish(root).close()
    assert verify(root) == []
    add(root, "x", ["identity_facts.parquet"], scope="part", part="1")
    age(root, 1000)
    assert gc(root, 0) == []
    assert [one.id for one in commit(root, latest(root).store_id).additions] == ["x"]


@pytest.mark.parametrize("hours", [0, 24])
@pytest.mark.parametrize("superseded", [True, False])
def test_a_dry_run_says_what_would_go_and_removes_nothing(labelled: Path, hours: float, superseded: bool) -> None:
    stage(labelled, "segments/000007")
    before = content(labelled)
    would = gc(labelled, hours, dry_run=True, superseded=superseded)
    assert content(labelled) == before
    assert would == gc(labelled, hours, superseded=superseded)
    assert would


def _no_tag(root: Path) -> None:
    (root / "tags").mkdir()
    (root / "tags/paper.json").write_text("{")


def _no_snapshot(root: Path) -> None:
    (root / "snapshots/00000002.json").write_text("{}")


@pytest.mark.parametrize("damage", [_no_tag, _no_snapshot])
def test_from_a_damaged_store_nothing_is_removed(labelled: Path, damage: Callable[[Path], None]) -> None:
    damage(labelled)
    before = content(labelled)
    with pytest.raises(Damaged):
        gc(labelled, 0)
    assert content(labelled) == before


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(store: Path, hours: float) -> None:
    with pytest.raises(BadInput, match="0 or more"):
        gc(store, hours)


def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".staging-x").mkdir()
    with pytest.raises(NotAStore):
        gc(tmp_path, 0)
    assert (tmp_path / ".staging-x").is_dir()


def test_a_unit_that_cannot_be_deleted_is_not_left_half(labelled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gc(labelled, superseded=True)
    age(labelled, 48)
    real, calls = os.unlink, [0]

    def fails(path: Any, **keys: Any) -> None:
        if os.fspath(path) == "examples.parquet" or str(path).endswith("/examples.parquet"):
            calls[0] += 1
            raise PermissionError(13, "Permission denied")
        real(path, **keys)

    monkeypatch.setattr(os, "unlink", fails)
    with pytest.raises(PermissionError):
        gc(labelled)
    monkeypatch.undo()
    assert calls == [1]
    assert not (labelled / FIRST).exists()
    assert published(labelled, names.ADDITIONS) == ["000002-labels"]
    assert verify(labelled) == []
    assert [one.why for one in gc(labelled, 0)] == ["left by a writer that did not end"]
    assert list(labelled.rglob(".staging-*")) == []


def test_the_command_says_what_goes(labelled: Path) -> None:
    would = rows_of("gc", labelled, "--older-than", "0", "--superseded", "--dry-run")
    assert would == [f"snapshots/{names.snapshot_name(number)}" for number in (1, 2, 3)] + [FIRST]
    assert snapshots(labelled) == [1, 2, 3]
    assert "4 would go" in good("gc", labelled, "--older-than", "0", "--superseded", "--dry-run").stderr
    assert "4 removed" in good("gc", labelled, "--older-than", "0", "--superseded").stderr
    done = good("gc", labelled, "--older-than", "0")
    assert (done.stdout, done.stderr) == ("", f"{labelled}: nothing removed\n")
    assert invoke("gc", labelled, "--older-than", "-1").exit_code == 2


def rows_of(*args: object) -> list[str]:
    import json

    return [row["path"] for row in json.loads(good(*args, "--format", "json").stdout)]
