"""A derived store appears whole or not at all, its sources stay as they are, and nothing is decoded without need."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import attnstore
from attnstore.errors import BadInput, Damaged, NoSpace
from attnstore.format.commit import commit, latest
from attnstore.format.manifest import read_store
from attnstore.format.verify import verify
from attnstore.share import maps_rewrite
from attnstore.share.compact import compact
from attnstore.share.less import less
from attnstore.share.merge import merge
from tests.share.made import maker, tree


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return maker(tmp_path_factory.mktemp("rewrite"))("source.attn")


WAYS: dict[str, Callable[[Path, Path], Path]] = {
    "less": lambda source, target: less(source, target, no_text=True, examples="example > 1"),
    "compact": compact,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("there", ["folder", "file", "link", "store"])
def test_what_lies_at_the_target_is_never_touched(
    source: Path, tmp_path: Path, way: Callable[[Path, Path], Path], there: str
) -> None:
    target = tmp_path / "target.attn"
    match there:
        case "folder":
            target.mkdir()
        case "file":
            target.write_text("mine")
        case "link":
            target.symlink_to(tmp_path / "nowhere")
        case _:
            less(source, target, facts_only=True)
    before = tree(tmp_path)
    with pytest.raises(BadInput, match="something lies at"):
        way(source, target)
    assert tree(tmp_path) == before
    assert os.path.lexists(target)
    assert [path.name for path in tmp_path.iterdir()] == ["target.attn"]


def test_a_target_without_a_folder_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no folder"):
        compact(source, tmp_path / "not" / "there.attn")


def test_a_source_whose_ingest_has_not_ended_is_refused(source: Path, tmp_path: Path) -> None:
    half = Path(shutil.copytree(source, tmp_path / "half.attn"))
    for name in ("segments/000001", "snapshots"):
        shutil.rmtree(half / name)
    commit(half, read_store(half).store_id)
    with pytest.raises(BadInput, match="a finished store"):
        compact(half, tmp_path / "target.attn")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half.attn"]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failing_disk_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Path, Path], Path], code: int
) -> None:
    before = tree(source)
    real, calls = os.fsync, 0

    def count(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        real(descriptor)

    monkeypatch.setattr(os, "fsync", count)
    way(source, tmp_path / "whole.attn")
    total = calls
    for nth in sorted({1, total // 2, total - 1}):
        left = nth

        def fail(descriptor: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise OSError(code, os.strerror(code))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(NoSpace if code == errno.ENOSPC else OSError):
            way(source, tmp_path / "target.attn")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["whole.attn"], nth
    assert tree(source) == before


@pytest.mark.slow
def test_a_killed_export_leaves_nothing_that_looks_like_a_store(source: Path, tmp_path: Path) -> None:
    code = "import sys; from attnstore.share.compact import compact; print('go', flush=True); compact(*sys.argv[1:])"
    before = tree(source)
    seen = {"whole": 0, "absent": 0}
    for turn in range(6):
        target = tmp_path / f"{turn}.attn"
        child = subprocess.Popen([sys.executable, "-c", code, source, target], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.12 * turn)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        if target.exists():
            seen["whole"] += 1
            assert verify(target, deep=True) == []
        else:
            seen["absent"] += 1
    assert seen["absent"]
    assert all(path.name.startswith(".staging-") or path.name.endswith(".attn") for path in tmp_path.iterdir())
    assert tree(source) == before


@pytest.mark.parametrize("name", ["shard", "table"])
@pytest.mark.parametrize("way", [*WAYS.values(), lambda source, target: less(source, target)], ids=[*WAYS, "copy"])
def test_a_damaged_source_is_refused(
    source: Path, tmp_path: Path, way: Callable[[Path, Path], Path], name: str
) -> None:
    copy = Path(shutil.copytree(source, tmp_path / "copy.attn"))
    folder = sorted((copy / "segments").iterdir())[-1]
    damaged = next(iter((folder / "maps.zarr").rglob("c/1/0/0"))) if name == "shard" else folder / "head_facts.parquet"
    data = bytearray(damaged.read_bytes())
    data[len(data) // 3] ^= 0x10
    damaged.write_bytes(data)
    with pytest.raises(Damaged):
        way(copy, tmp_path / "target.attn")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.attn"]


def test_codes_that_are_read_a_few_at_a_time_are_the_same(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = less(source, tmp_path / "whole.attn", examples="example % 2 = 0", heads=[0, 2])
    monkeypatch.setattr(maps_rewrite, "BLOCK_CODES", 7)
    pieces = less(source, tmp_path / "pieces.attn", examples="example % 2 = 0", heads=[0, 2])
    assert tree(whole / "segments") == tree(pieces / "segments")


def test_equal_exports_have_equal_content_and_one_id(source: Path, tmp_path: Path) -> None:
    one, two = (latest(compact(source, tmp_path / name)) for name in ("one.attn", "two.attn"))
    assert (one.store_id, one.content_hash) == (two.store_id, two.content_hash)


def test_a_derived_store_is_a_source_as_well(source: Path, tmp_path: Path) -> None:
    halves = [less(source, tmp_path / f"{n}.attn", examples=f"example % 2 = {n}") for n in (0, 1)]
    made = compact(merge(halves, tmp_path / "both.attn"), tmp_path / "compact.attn")
    assert verify(made, deep=True) == []
    with attnstore.open(source) as before, attnstore.open(made) as after:
        for number in range(before.info.n_examples):
            name = f"s{number}"
            assert (before.attention(name).weights == after.attention(name).weights).all()
