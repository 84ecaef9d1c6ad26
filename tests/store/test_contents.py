"""Tests of opening a store: what is checked, and what is said of what is wrong."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound, UnsupportedFormat
from attnstore.format.commit import commit, publish, seal, stage
from attnstore.format.parquet import TableWriter
from attnstore.store.contents import read_contents
from attnstore.store.store import open as open_store
from tests.forging import repin
from tests.store.making import Made, make_store


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of the store that a test may spoil."""
    return Path(shutil.copytree(folder, tmp_path / "copy.attn"))


def test_the_newest_snapshot_is_read_with_all_its_segments(folder: Path) -> None:
    contents = read_contents(folder)
    assert [unit.id for unit in contents.segments] == ["000000", "000001", "000002"]
    assert contents.additions == ()
    assert contents.snapshot.number == 1
    listed = sum(path.stat().st_size for path in folder.glob("segments/*/**/*") if path.is_file())
    manifests = sum(path.stat().st_size for path in folder.glob("segments/*/segment.json"))
    assert contents.n_bytes == listed - manifests


def test_a_folder_without_a_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="no folder there"):
        read_contents(tmp_path / "none")
    with pytest.raises(NotAStore, match=r"no store\.json"):
        read_contents(tmp_path)


def test_a_newer_format_is_refused_with_its_version(copy: Path) -> None:
    value = json.loads((copy / "store.json").read_text())
    (copy / "store.json").write_text(json.dumps({**value, "format": "2.0"}))
    with pytest.raises(UnsupportedFormat, match=r"format 2\.0"):
        read_contents(copy)


def test_a_newer_minor_format_with_unknown_keys_is_read(copy: Path) -> None:
    value = json.loads((copy / "store.json").read_text())
    (copy / "store.json").write_text(json.dumps({**value, "format": "1.7", "later": {"x": 1}}))
    assert read_contents(repin(copy)).info.format == "1.7"


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _link(path: Path) -> None:
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(moved)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("spoil", "found"),
    [(Path.unlink, "is missing"), (_truncate, "bytes"), (_link, "no regular file"), (_pipe, "no regular file")],
)
@pytest.mark.parametrize("name", ["words.parquet", "maps.zarr/zarr.json", "maps.zarr/encoder/c/1/0/0"])
def test_a_spoilt_file_is_named_before_anything_is_read(
    copy: Path, spoil: Callable[[Path], None], found: str, name: str
) -> None:
    spoil(copy / "segments/000001" / name)
    contents = read_contents(copy)  # files are not looked at yet: a large store has a hundred thousand
    for _ in range(2):
        with pytest.raises(Damaged, match=found) as caught:
            _ = contents.units
        assert f"segments/000001/{name}" in str(caught.value)
    with open_store(copy) as store:
        for use in (lambda: store.sql("select 1"), lambda: store.ask("heads/entropy"), lambda: store.attention(0)):
            with pytest.raises(Damaged, match=found):
                use()


def test_opening_reads_no_manifest(copy: Path) -> None:
    for manifest in copy.glob("segments/*/segment.json"):
        manifest.unlink()
    assert read_contents(copy).snapshot.number == 1
    with pytest.raises(Damaged, match="it is missing"):
        _ = read_contents(copy).units


def test_a_truncated_file_is_named_with_the_bytes_found_and_expected(copy: Path) -> None:
    path = copy / "segments/000000/tokens.parquet"
    size = path.stat().st_size
    _truncate(path)
    with pytest.raises(Damaged) as caught:
        _ = read_contents(copy).units
    assert caught.value.found == f"{path} has {size - 1} bytes"
    assert caught.value.expected == f"{size} bytes"


def test_a_linked_folder_inside_the_store_is_refused(copy: Path) -> None:
    maps = copy / "segments/000000/maps.zarr"
    maps.rename(copy / "outside")
    maps.symlink_to(copy / "outside")
    with pytest.raises(Damaged, match="is a link"):
        _ = read_contents(copy).units


def test_a_manifest_that_the_snapshot_does_not_list_is_refused(copy: Path) -> None:
    path = copy / "segments/000002/segment.json"
    path.write_text(path.read_text().replace('"stop": 7', '"stop": 8'))
    with pytest.raises(Damaged, match="sha256") as caught:
        _ = read_contents(copy).units
    assert "segments/000002/segment.json" in str(caught.value)


def test_a_snapshot_of_another_store_is_refused(copy: Path) -> None:
    value = json.loads((copy / "store.json").read_text())
    (copy / "store.json").write_text(json.dumps({**value, "store_id": "f" * 16}))
    with pytest.raises(Damaged, match="of another store"):
        read_contents(copy)


def test_expect_takes_eight_digits_or_more_of_the_content_hash(folder: Path) -> None:
    pinned = read_contents(folder).snapshot.content_hash
    for prefix in (pinned, pinned[:8], f"sha256:{pinned[:12]}", pinned[:10].upper()):
        assert read_contents(folder, expect=prefix).snapshot.content_hash == pinned
    with pytest.raises(Damaged, match="content hash"):
        read_contents(folder, expect="0" * 8 if pinned[0] != "0" else "1" * 8)
    for wrong in (pinned[:7], "not a hash", ""):
        with pytest.raises(BadInput, match="hexadecimal"):
            read_contents(folder, expect=wrong)


def test_a_tag_and_a_number_name_an_older_snapshot(copy: Path) -> None:
    staging = stage(copy, "additions/0001-skipped")
    writer = TableWriter(staging, "skipped")
    writer.append_rows([{"name": "x", "reason": "too long"}])
    unit = seal(staging, "additions/0001-skipped", {"scope": "store"}, {"skipped": writer.close()})
    assert publish(staging, copy, unit.folder)
    commit(copy, read_contents(copy).info.store_id)
    (copy / "tags").mkdir()
    (copy / "tags/paper.json").write_text('{"snapshot": 1}')
    assert len(read_contents(copy).additions) == 1
    assert len(read_contents(copy, snapshot=2).additions) == 1
    assert read_contents(copy, snapshot=1).additions == ()
    assert read_contents(copy, tag="paper").snapshot.number == 1
    with pytest.raises(NotFound, match="one of paper"):
        read_contents(copy, tag="papre")
    with pytest.raises(NotFound, match="no snapshot 3"):
        read_contents(copy, snapshot=3)
    with pytest.raises(BadInput, match="both"):
        read_contents(copy, snapshot=1, tag="paper")
    with pytest.raises(BadInput, match="the name"):
        read_contents(copy, tag="../../store")
    (copy / "tags/paper.json").write_text('{"snapshot": "1"}')
    with pytest.raises(Damaged, match="the number of a snapshot"):
        read_contents(copy, tag="paper")


def test_a_store_without_a_snapshot_says_that_the_ingest_did_not_get_far(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "own.attn", made[:1])
    shutil.rmtree(root / "snapshots")
    with pytest.raises(NotAStore, match="no snapshot yet"):
        read_contents(root)
