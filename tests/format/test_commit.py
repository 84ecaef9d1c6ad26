"""Units are published whole or not at all, and snapshots are never overwritten."""

import itertools
import shutil
import threading
from pathlib import Path

import pytest

from attnstore.errors import Damaged, NotAStore, NotFound
from attnstore.format import commit as commit_module
from attnstore.format import names
from attnstore.format.commit import (
    commit,
    content_hash,
    in_work,
    latest,
    publish,
    published,
    seal,
    snapshots,
    stage,
    write_once,
)
from attnstore.format.manifest import Reference, read_unit


def make_unit(root: Path, number: int, content: bytes = b"x") -> bool:
    folder = f"{names.SEGMENTS}/{names.segment_name(number)}"
    staging = stage(root, folder)
    (staging / "deep").mkdir()
    (staging / "deep" / "file").write_bytes(content)
    seal(staging, folder, {}, {})
    return publish(staging, root, folder)


def test_a_staged_unit_is_not_published(tmp_path: Path) -> None:
    stage(tmp_path, "segments/000000")
    assert published(tmp_path, names.SEGMENTS) == []
    assert in_work(tmp_path, names.SEGMENTS) == {"000000"}


def test_the_second_writer_of_a_unit_drops_its_copy(tmp_path: Path) -> None:
    assert make_unit(tmp_path, 0, b"first")
    assert not make_unit(tmp_path, 0, b"second")
    assert (tmp_path / "segments/000000/deep/file").read_bytes() == b"first"
    assert in_work(tmp_path, names.SEGMENTS) == set()


def test_a_manifest_lists_size_and_both_checksums(tmp_path: Path) -> None:
    make_unit(tmp_path, 0, b"123456789")
    (file,) = read_unit(tmp_path, "segments/000000").files
    assert (file.path, file.bytes) == ("deep/file", 9)
    # The check value of CRC-32C (iSCSI) for the nine digits, and the sha256 of the same bytes.
    assert file.crc32c == "e3069283"
    assert file.sha256 == "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"


def test_a_commit_of_nothing_new_makes_no_snapshot(tmp_path: Path) -> None:
    make_unit(tmp_path, 0)
    first = commit(tmp_path, "s")
    assert commit(tmp_path, "s") == first
    make_unit(tmp_path, 1)
    second = commit(tmp_path, "s")
    assert (first.number, second.number, second.parent) == (1, 2, 1)
    assert [r.id for r in second.segments] == ["000000", "000001"]
    assert latest(tmp_path, 1) == first


def test_eight_writers_make_one_chain(tmp_path: Path) -> None:
    def write(start: int) -> None:
        for number in range(start, start + 5):
            make_unit(tmp_path, number)
            commit(tmp_path, "s")

    threads = [threading.Thread(target=write, args=(5 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    newest = latest(tmp_path)
    assert len(newest.segments) == 40
    chain = [latest(tmp_path, number) for number in snapshots(tmp_path)]
    assert [s.number for s in chain] == list(range(1, newest.number + 1))
    assert [s.parent for s in chain] == [None, *range(1, newest.number)]
    assert all(len(a.segments) < len(b.segments) for a, b in itertools.pairwise(chain))


def test_the_content_hash_does_not_depend_on_the_order(tmp_path: Path) -> None:
    a, b = Reference("000000", "aa"), Reference("000001", "bb")
    assert content_hash((a, b)) == content_hash((b, a)) != content_hash((a,))


def test_write_once_keeps_the_first(tmp_path: Path) -> None:
    assert write_once(tmp_path / "f", b"1")
    assert not write_once(tmp_path / "f", b"2")
    assert (tmp_path / "f").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_store_without_a_snapshot_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="run the same command again"):
        latest(tmp_path)


def test_an_unknown_snapshot_names_those_that_there_are(tmp_path: Path) -> None:
    make_unit(tmp_path, 0)
    commit(tmp_path, "s")
    with pytest.raises(NotFound, match="no snapshot 7; expected one of 1 to 1"):
        latest(tmp_path, 7)


def test_a_snapshot_that_was_edited_is_damaged(tmp_path: Path) -> None:
    make_unit(tmp_path, 0)
    commit(tmp_path, "s")
    path = tmp_path / "snapshots" / "00000001.json"
    text = path.read_text().replace('"000000"', '"000001"')
    path.write_text(text.replace(latest(tmp_path).segments[0].sha256, "0" * 64))
    with pytest.raises(Damaged, match="does not match its own hash"):
        latest(tmp_path)


def test_a_copy_left_among_the_segments_is_none(tiny_store: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(tiny_store, tmp_path / "s.attn"))
    for name in ("000000 (copy)", "000000.bak", "0000000", "²"):
        shutil.copytree(store / "segments/000000", store / "segments" / name)
    (store / "snapshots/².json").write_text("{}")
    (store / "snapshots/1.json").write_text("{}")
    assert published(store, "segments") == ["000000"]
    assert snapshots(store) == [1]
    assert commit(store, latest(store).store_id) == latest(tiny_store)


def test_a_snapshot_under_another_number_is_damage_and_no_endless_loop(tiny_store: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(tiny_store, tmp_path / "s.attn"))
    shutil.copy(store / "snapshots/00000001.json", store / "snapshots/00000002.json")
    shutil.rmtree(store / "segments/000000")
    with pytest.raises(Damaged, match="says that it is 1"):
        commit(store, latest(tiny_store).store_id)


def test_new_folders_are_synced_in_the_one_above_them(
    tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(commit_module, "sync", synced.append)
    root = tmp_path / "new.attn"
    root.mkdir()
    staging = stage(root, "segments/000000")
    seal(staging, "segments/000000", {}, {})
    publish(staging, root, "segments/000000")
    assert synced[-2:] == [root / "segments", root]
    write_once(root / "snapshots/00000001.json", b"{}")
    assert synced[-2:] == [root, root / "snapshots"]
