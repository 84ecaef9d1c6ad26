"""When the power fails, a store is what one of its snapshots says, whole, and what was reported as done is there."""

import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from attnstore.errors import NotAStore
from attnstore.format.commit import latest, snapshots
from attnstore.format.verify import verify
from attnstore.store.store import open as open_store
from tests.conftest import SENTENCES, write_arrays
from tests.survival.faults import ENDED, Prepared
from tests.survival.recorded import Call, Disk, read_log


@dataclass(frozen=True)
class Recording:
    """The calls of one ingest that ran to its end, or of one that ended early and one that took it up again."""

    name: str
    top: Path
    calls: Sequence[Call]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("power")


@pytest.fixture(scope="module")
def prepared(folder: Path) -> Iterator[Prepared]:
    with Prepared(folder) as process:
        yield process


@pytest.fixture(scope="module")
def corpus(folder: Path) -> Path:
    return write_arrays(folder / "corpus", SENTENCES[3:6], layers=1, heads=2)


@pytest.fixture(scope="module")
def alone(prepared: Prepared, folder: Path, corpus: Path) -> Recording:
    """An ingest that nothing disturbs, into a folder that is new as well."""
    top, log = folder / "alone", folder / "alone.calls"
    top.mkdir()
    ran = prepared.ingest(corpus, top / "new" / "s.attn", log=log, below=top)
    assert ran["error"] is None, ran
    return Recording("alone", top, read_log(log))


@pytest.fixture(scope="module")
def resumed(prepared: Prepared, folder: Path, corpus: Path, alone: Recording) -> list[Recording]:
    """Ingests that were killed between a change of names and the sync after it, and then taken up again."""
    calls = [call for call in alone.calls if call.what != "mark"]
    named = [n for n, call in enumerate(calls, 1) if call.what in ("rename", "link") and "maps" not in call.path]
    recordings = []
    for n in named:
        top, log = folder / f"resumed-{n}", folder / f"resumed-{n}.calls"
        top.mkdir()
        store = top / "new" / "s.attn"
        assert prepared.ingest(corpus, store, n=n + 1, log=log, below=top)["status"] == ENDED
        assert prepared.ingest(corpus, store, log=log, below=top)["error"] is None
        recordings.append(Recording(f"killed after call {n}, {calls[n - 1].what}", top, read_log(log)))
    return recordings


def what_is_wrong(image: Path, marks: Sequence[str]) -> str | None:
    """Why a store as the power failure left it is not what it must be; None for one that is.

    `marks` are the numbers of the snapshots that `commit` had reported.
    """
    store = image / "new" / "s.attn"
    try:
        opened = open_store(store)
    except NotAStore as error:
        return f"it is gone after snapshot {marks[-1]}: {error}" if marks else None
    with opened:
        number = opened.contents.snapshot.number
        rows = opened.sql("select count(*) n from examples").to_numpy()["n"][0]
        parts = [opened.info.segments[int(segment.id)] for segment in opened.contents.snapshot.segments]
        listed = sum(part.stop - part.first for part in parts)
    if marks and number < int(marks[-1]):
        return f"snapshot {number}, after {marks[-1]} was reported"
    if found := verify(store, deep=True):
        return f"{found}"
    for older in snapshots(store):
        latest(store, older)
    return None if rows == listed else f"{rows} of {listed} examples"


def what_is_wrong_after(
    recording: Recording, after: Sequence[int], target: Path, seed: str, *, worst: bool = False
) -> tuple[int, list[str]]:
    """Let the power fail after these calls, once each: how many images were stores, and what is wrong with any."""
    stores, wrong, disk = 0, list[str](), Disk(recording.top)
    for n, call in enumerate(recording.calls, 1):
        disk.do(call)
        for place in range(after.count(n)):
            target.mkdir()
            disk.write_image(target, random.Random(f"{seed} {n} {place}"), worst=worst)
            try:
                found = what_is_wrong(target, disk.marks)
            except Exception as error:  # a hole
                found = f"{type(error).__name__}: {error}"
            if found is not None:
                wrong.append(f"{recording.name}, power lost after call {n} ({call.what} {call.path}): {found}")
            stores += any((target / "new" / "s.attn" / "snapshots").glob("0*.json"))
            shutil.rmtree(target)
    return stores, wrong


def all_hold(recordings: Sequence[Recording], target: Path, images: int, seed: int) -> None:
    """Share so many images among recordings: half after the calls that end one, where it is decided what is there."""
    wrong, stores = list[str](), 0
    for place, recording in enumerate(recordings):
        share = images // len(recordings) + (place < images % len(recordings))
        rng = random.Random(f"{seed} {place}")
        where = (ends(recording, 12), ends(recording, 60), range(1, len(recording.calls) + 1))
        after = [rng.choice(rng.choices(where, (5, 2, 3))[0]) for _ in range(share)]
        found = what_is_wrong_after(recording, after, target, f"{seed} {place}")
        stores, wrong = stores + found[0], wrong + found[1]
    print(f"{images} images of {len(recordings)} recordings, {stores} of them stores, {len(wrong)} wrong")
    assert wrong == [], "\n".join(wrong)
    assert 0 < stores < images


def ends(recording: Recording, count: int) -> list[int]:
    """The last calls of a recording that change names or sync, and what it reported as done."""
    return [n for n, call in enumerate(recording.calls, 1) if call.what not in ("write", "create", "none")][-count:]


def test_recorded_calls_replayed_to_their_end_give_the_folder_that_they_made(alone: Recording, tmp_path: Path) -> None:
    """So no library writes past the recorder."""
    disk = Disk(alone.top)
    for call in alone.calls:
        disk.do(call)
    (tmp_path / "now").mkdir()
    disk.write_now(tmp_path / "now")
    made, replayed = (
        {path.relative_to(top): path.read_bytes() if path.is_file() else None for path in top.rglob("*")}
        for top in (alone.top, tmp_path / "now")
    )
    assert replayed == made
    assert len(made) > 50


def test_the_images_show_what_is_not_synced(alone: Recording, tmp_path: Path) -> None:
    """Without the syncs of files, empty ones lie where a segment was published."""
    files = {call.inode for call in alone.calls if call.what == "create"}
    careless = [call for call in alone.calls if call.what != "sync" or call.inode not in files]
    with pytest.raises(AssertionError, match="Damaged"):
        all_hold([Recording("careless", alone.top, careless)], tmp_path / "image", 8, 0)


def test_after_a_power_failure_a_store_is_whole_or_not_there_yet(alone: Recording, tmp_path: Path) -> None:
    all_hold([alone], tmp_path / "image", 16, 0)


def test_a_run_syncs_what_one_that_was_killed_had_not_synced(resumed: list[Recording], tmp_path: Path) -> None:
    for recording in resumed:
        done = [n for n, call in enumerate(recording.calls, 1) if call.what == "mark"][-1:]
        assert what_is_wrong_after(recording, done, tmp_path / "image", "", worst=True) == (1, [])


@pytest.mark.slow
def test_hundreds_of_power_failures(alone: Recording, resumed: list[Recording], tmp_path: Path) -> None:
    all_hold([alone, *resumed], tmp_path / "image", 300, 1)
    for recording in (alone, *resumed):
        after = ends(recording, 12)
        assert what_is_wrong_after(recording, after, tmp_path / "image", "", worst=True) == (len(after), [])


@pytest.mark.soak
def test_thousands_of_power_failures(alone: Recording, resumed: list[Recording], tmp_path: Path) -> None:
    all_hold([alone, *resumed], tmp_path / "image", 5_000, 2)
