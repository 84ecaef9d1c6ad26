"""Whichever file-system call of an ingest fails or is its last, the store stays sound and the same call finishes it."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SENTENCES, write_arrays
from tests.survival.faults import ENDED, FAULTS, Prepared
from tests.survival.recorded import read_log

NOT_YET: tuple[list[str], ...] = ([], ["no snapshot"], ["no store"])
"""What may be found in a store after a fault: nothing is wrong, or it cannot be opened yet."""
NAMED = {"OSError", "PermissionError", "NoSpace", "BadInput", "AttnStoreError"}
"""Errors with which an ingest may end."""


@dataclass(frozen=True)
class Undisturbed:
    """An ingest without a fault: the corpus, what every call was, and what it led to."""

    corpus: Path
    calls: Sequence[str]
    result: Mapping[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def workers(folder: Path) -> Iterator[list[Prepared]]:
    """Two, for an ingest that keeps few tables: a fault in the thousandth row of Parquet is one in the first."""
    with Prepared(folder, "none") as one, Prepared(folder, "none") as other:
        yield [one, other]


@pytest.fixture(scope="module")
def undisturbed(workers: list[Prepared], folder: Path) -> Undisturbed:
    return undisturbed_by(workers[0], folder)


def undisturbed_by(prepared: Prepared, folder: Path) -> Undisturbed:
    """What an ingest without a fault does and leads to."""
    corpus = write_arrays(folder / "corpus", SENTENCES[3:6], layers=1, heads=2)
    store, log = folder / "undisturbed.attn", folder / "undisturbed.calls"
    ran = prepared.ingest(corpus, store, log=log)
    assert ran["error"] is None, ran
    assert len(list((store / "segments").glob("0*"))) == 3
    result = prepared.resume(corpus, store)
    assert result["before"] == [], result
    calls = [entry.what for entry in read_log(log) if entry.what != "mark"]
    assert len(calls) == ran["seen"]
    return Undisturbed(corpus, calls, result)


def survives(prepared: Prepared, run: Undisturbed, store: Path, n: int, fault: str) -> str | None:
    """Let the n-th call of an ingest meet a fault, then take it up again; what is wrong then, if anything."""
    met = prepared.ingest(run.corpus, store, n=n, fault=fault)
    if met["status"] not in (0, ENDED):
        return f"it ended with status {met['status']}"
    if met.get("seen", n if fault.startswith("exit") else 0) < n or (met["status"] == 0 and fault.startswith("exit")):
        return f"the fault did not come: {met}"
    if met["status"] == 0 and met["error"] is not None and met["error"][0] not in NAMED:
        return f"it raised {met['error']}"
    if met["status"] == 0 and met["error"] is not None and fault == "short write":
        return f"it did not go on after a short write: {met['error']}"
    resumed = prepared.resume(run.corpus, store)
    if resumed.get("before") not in NOT_YET:
        return f"found after the fault: {resumed}"
    if resumed["error"] is not None:
        return f"it could not be taken up again: {resumed['error']}"
    if any(resumed[key] != run.result[key] for key in ("content", "bytes")):
        return "the result is another one"
    shutil.rmtree(store)
    return None


def all_survive(workers: Sequence[Prepared], run: Undisturbed, folder: Path, points: Sequence[tuple[int, str]]) -> None:
    """Try all points, each prepared process one at a time, and name those that went wrong."""

    def work(share: int) -> list[str]:
        wrong = []
        for n, fault in points[share :: len(workers)]:
            found = survives(workers[share], run, folder / f"{n}-{fault.replace(' ', '_')}.attn", n, fault)
            if found is not None:
                wrong.append(f"{fault} at call {n} ({run.calls[n - 1]}): {found}")
        return wrong

    with ThreadPoolExecutor(len(workers)) as pool:
        wrong = [line for lines in pool.map(work, range(len(workers))) for line in lines]
    print(f"{len(points)} points, {len(wrong)} wrong")
    assert wrong == []


def test_a_fault_at_steps_that_are_spread_over_an_ingest_leaves_a_sound_store_that_the_same_call_finishes(
    workers: list[Prepared], undisturbed: Undisturbed, folder: Path
) -> None:
    calls, count = undisturbed.calls, len(undisturbed.calls)
    last = range(count - 13, count + 1)  # a segment's rename, a snapshot, the README
    spread = range(1, count - 13, (count - 14) // 6)
    torn, whole = ("exit after half a write", "half, then ENOSPC"), [name for name in FAULTS if "half" not in name]
    points = []
    for place, n in enumerate([*spread, *last]):
        kinds = torn if calls[n - 1] == "write" else whole
        points.append((n, kinds[place % len(kinds)]))
    assert len(points) >= 20
    all_survive(workers, undisturbed, folder, points)


@pytest.mark.slow
def test_a_fault_at_any_call_of_an_ingest_leaves_a_sound_store_that_the_same_call_finishes(
    workers: list[Prepared], undisturbed: Undisturbed, folder: Path
) -> None:
    faults = list(FAULTS)
    points = [(n, faults[n % len(faults)]) for n in range(1, len(undisturbed.calls) + 1)]
    assert len(points) >= 300
    all_survive(workers, undisturbed, folder, points)


@pytest.mark.soak
def test_each_fault_at_every_call_of_an_ingest_that_keeps_all_its_tables(tmp_path: Path) -> None:
    with Prepared(tmp_path) as one, Prepared(tmp_path) as other:
        run = undisturbed_by(one, tmp_path)
        for fault in FAULTS:
            points = [(n, fault) for n in range(1, len(run.calls) + 1)]
            print(fault, end=": ")
            all_survive([one, other], run, tmp_path, points)
