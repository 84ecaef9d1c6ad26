"""Many processes commit to one folder at once: one chain, nothing lost, and readers see it grow and never torn."""

import itertools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from attnstore.format import names
from attnstore.format.commit import commit, latest, published, snapshots
from attnstore.format.manifest import read_store
from attnstore.format.verify import verify
from attnstore.share.collect import gc
from attnstore.share.tags import tag
from attnstore.store.contents import read_contents
from tests.survival.committing import publish_one

ROOT = Path(__file__).parents[2]


def units(root: Path, **pinned: Any) -> set[str]:
    """What a reader finds; Damaged where a listed file is not there with its size."""
    return {unit.id for unit in read_contents(root, **pinned).units}


def together(root: Path, writers: int, commits: int, readers: int = 2) -> int:
    """Let processes commit at once and readers open meanwhile; how often these did."""
    command = [sys.executable, "-m", "tests.survival.committing", str(root)]
    processes = [
        subprocess.Popen([*command, str(who), str(commits)], cwd=ROOT, stdin=subprocess.PIPE) for who in range(writers)
    ]
    ended, problems, reads = threading.Event(), list[BaseException](), [0] * readers

    def read(who: int) -> None:
        before: set[str] = set()
        try:
            while not ended.is_set():
                now = units(root)
                assert before <= now, f"lost {before - now}"
                before, reads[who] = now, reads[who] + 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=read, args=(who,)) for who in range(readers)]
    for thread in threads:
        thread.start()
    try:
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.close()
        assert [process.wait(timeout=300) for process in processes] == [0] * writers
    finally:
        for process in processes:
            process.kill()
            process.wait()
        ended.set()
        for thread in threads:
            thread.join()
    assert problems == []
    return sum(reads)


def check_chain(root: Path, first: int, commits: int) -> None:
    """Every number once, every parent the one before, every snapshot holds the one before, nothing left behind."""
    chain = [latest(root, number) for number in snapshots(root)]
    assert [one.number for one in chain] == list(range(first, chain[-1].number + 1))
    assert [one.parent for one in chain[1:]] == [one.number for one in chain[:-1]]
    for before, after in itertools.pairwise(chain):
        assert set(before.additions) < set(after.additions)
    assert len(chain[-1].additions) == commits == len(published(root, names.ADDITIONS))
    assert list(root.rglob(f"{names.STAGING}*")) == []
    assert verify(root) == []


@pytest.fixture
def store(tiny_store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_store, tmp_path / "s.attn"))


def test_four_processes_commit_five_times_each(store: Path) -> None:
    assert together(store, 4, 5) > 0
    check_chain(store, 1, 20)


@pytest.mark.slow
def test_eight_processes_commit_fifty_times_each(store: Path) -> None:
    reads = together(store, 8, 50)
    assert reads >= 50
    check_chain(store, 1, 400)


@pytest.mark.soak
@pytest.mark.skipif("ATTNSTORE_SOAK" not in os.environ, reason="takes long: set ATTNSTORE_SOAK")
def test_ten_thousand_commits(tiny_store: Path, tmp_path: Path) -> None:
    for number in range(25):
        root = Path(shutil.copytree(tiny_store, tmp_path / f"{number}.attn"))
        together(root, 8, 50)
        check_chain(root, 1, 400)
        shutil.rmtree(root)


def dropping_store(store: Path) -> str:
    """Two additions of which the second replaces the first; the id of the first."""
    (store.parent / "l.csv").write_text("name,text,label\ns0,x,a\n")
    from attnstore.job.annotate import annotate_labels

    first = annotate_labels(store, store.parent / "l.csv").addition
    annotate_labels(store, store.parent / "l.csv")
    return first


def test_a_commit_that_began_before_a_drop_does_not_bring_the_addition_back(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dropping_store(store)
    publish_one(store, 0, 0)
    real, store_id = os.link, read_store(store).store_id

    def late(*args: Any, **keys: Any) -> None:
        monkeypatch.setattr(os, "link", real)
        # The commit has listed the addition already. What is dropped is removed at once, whatever the limit protects.
        commit(store, store_id, dropping=[first])
        shutil.rmtree(store / "additions" / first)
        real(*args, **keys)

    monkeypatch.setattr(os, "link", late)
    made = commit(store, store_id)
    assert first not in {one.id for one in made.additions}
    assert "w0-0000" in {one.id for one in made.additions}
    assert units(store) == {"000000", "000002-labels", "w0-0000"}


def test_an_addition_that_goes_while_a_commit_reads_it_is_passed_over(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dropping_store(store)
    publish_one(store, 0, 0)
    real, store_id = Path.read_bytes, read_store(store).store_id

    def late(path: Path) -> bytes:
        if path.parent.name == first:
            monkeypatch.setattr(Path, "read_bytes", real)
            commit(store, store_id, dropping=[first])
            shutil.rmtree(path.parent)
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", late)
    commit(store, store_id)
    assert units(store) == {"000000", "000002-labels", "w0-0000"}


def test_a_commit_that_comes_while_gc_drops_is_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = dropping_store(store)
    real, store_id = os.link, read_store(store).store_id

    def late(*args: Any, **keys: Any) -> None:
        monkeypatch.setattr(os, "link", real)
        publish_one(store, 0, 0)
        commit(store, store_id)  # takes the number
        real(*args, **keys)

    monkeypatch.setattr(os, "link", late)
    gc(store, 1, superseded=True)
    assert units(store) == {"000000", "000002-labels", "w0-0000"}
    assert latest(store).dropped == (first,)


def test_a_snapshot_that_is_tagged_while_gc_takes_it_stays(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropping_store(store)
    real = Path.rename

    def late(path: Path, target: Path) -> Path:
        if path.name == "00000001.json":
            monkeypatch.setattr(Path, "rename", real)
            tag(store, "paper", 1)
        return real(path, target)

    monkeypatch.setattr(Path, "rename", late)
    assert "snapshots/00000001.json" not in {one.path for one in gc(store, 0)}
    assert snapshots(store) == [1, 3]
    assert units(store, tag="paper") == {"000000"}


def test_a_reader_that_lists_a_snapshot_which_is_collected_takes_the_newer_one(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.listdir

    def late(place: Any) -> list[str]:
        found = real(place)
        if Path(place).name == names.SNAPSHOTS:
            monkeypatch.setattr(os, "listdir", real)
            publish_one(store, 0, 0)
            commit(store, read_store(store).store_id)
            gc(store, 0)
        return found

    monkeypatch.setattr(os, "listdir", late)
    assert latest(store).number == 2
    assert snapshots(store) == [2]
