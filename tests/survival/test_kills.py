"""Two writers on one store are killed at random times, again and again, while two readers ask: nothing tears."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import NotAStore
from attnstore.job.run import ingest
from attnstore.store.store import open as open_store
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.survival.faults import REPOSITORY, contents, findings, prepare

AGGREGATE = """
    select example, count(*) n, round(sum(max_sum), 6) largest, round(sum(distance_sum), 6) distance
    from head_facts group by all order by all
"""


@dataclass
class Tally:
    """What happened, over all stores."""

    kills: int = 0
    reads: int = 0
    not_yet: int = 0
    stores: int = 0
    bad: int = 0


@contextmanager
def running(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """This file as a process of its own; it is ended with the block."""
    command = [sys.executable, "-m", "tests.survival.test_kills", *arguments]
    pipe, environment = subprocess.PIPE, {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_arrays(tmp_path_factory.mktemp("corpus"), SENTENCES * 3, layers=1, heads=2)


@dataclass(frozen=True)
class Undisturbed:
    """The store that one writer makes whom nobody disturbs, and the seconds that a segment took here."""

    store: Path
    pace: float


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    store = tmp_path_factory.mktemp("undisturbed") / "s.attn"
    with running("write", str(corpus)) as writer:
        ask(writer, "begin")  # so that its imports are not counted
        begun = time.monotonic()
        ask(writer, str(store))
        assert ask(writer, "ended?") == 0
        took = time.monotonic() - begun
    assert findings(store) == []
    return Undisturbed(store, took / len(list((store / "segments").iterdir())))


def ask(process: "subprocess.Popen[str]", question: str) -> Any:
    """Send one line and take the answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(question, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    """Send one line to a process that answers later."""
    assert process.stdin is not None
    print(line, file=process.stdin, flush=True)


def disturb(
    corpus: Path, undisturbed: Undisturbed, folder: Path, *, enough: Callable[[Tally], bool], seed: int
) -> Tally:
    """Kill writers at random times until it is enough, making one store after the other, each to its end."""
    tally, rng = Tally(), random.Random(seed)
    with ExitStack() as stack:
        writers = [stack.enter_context(running("write", str(corpus))) for _ in range(2)]
        readers = [stack.enter_context(running("read", str(undisturbed.store))) for _ in range(2)]
        while not enough(tally):
            store = folder / f"{tally.stores}.attn"
            for reader in readers:
                tell(reader, str(store))
            left = rng.randint(6, 12)  # kills of this store's writers
            at_work = [ask(writer, str(store)) for writer in writers]
            while left:
                time.sleep(undisturbed.pace * rng.uniform(0.1, 6))
                place = rng.randrange(2)
                os.kill(at_work[place], signal.SIGKILL)
                ended = ask(writers[place], "ended?")
                at_work[place] = ask(writers[place], str(store))
                if not ended:
                    break  # it had finished the store before it was killed
                tally.kills += ended == -signal.SIGKILL
                left -= 1
            # Those that were killed last are replaced by writers whom nobody disturbs.
            for writer in writers:
                assert ask(writer, "ended?") == 0
            for reader in readers:
                found = ask(reader, "")
                assert found["wrong"] == [], found
                tally.reads, tally.not_yet = tally.reads + found["reads"], tally.not_yet + found["not yet"]
            tally.bad += findings(store) != [] or contents(store) != contents(undisturbed.store)
            tally.stores += 1
    print(tally)
    return tally


@pytest.mark.slow
def test_forty_kills_leave_no_trace_in_what_five_hundred_reads_see(
    corpus: Path, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    tally = disturb(
        corpus, undisturbed, tmp_path, enough=lambda so_far: so_far.kills >= 40 and so_far.reads >= 500, seed=1
    )
    assert tally.bad == 0


@pytest.mark.soak
def test_a_thousand_kills_in_an_hour_leave_no_trace(corpus: Path, undisturbed: Undisturbed, tmp_path: Path) -> None:
    end = time.monotonic() + 3600
    tally = disturb(
        corpus, undisturbed, tmp_path, enough=lambda so_far: so_far.kills >= 1000 and time.monotonic() > end, seed=2
    )
    assert tally.bad == 0


# What follows runs in processes of its own.


def lines() -> Iterator[str]:
    """The lines of standard input; none is taken before it is asked for."""
    with open(0, "rb", buffering=0, closefd=False) as given:
        while line := given.readline():
            yield line.decode().strip()


def write(corpus: str) -> None:
    """For a line that names a store: start a process that ingests into it, and answer its number. "ended?": how."""
    recipe, child = arrays_recipe(Path(corpus)), 0
    prepare()
    for line in lines():
        if line == "begin":
            print(0, flush=True)
            continue
        if line == "ended?":
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        child = os.fork()
        if not child:
            status = 1
            try:
                ingest(recipe, line).close()
                status = 0
            finally:
                os._exit(status)
        print(child, flush=True)


def read(undisturbed: str) -> None:
    """For a line that names a store: ask it again and again until an empty line; answer how often and what is wrong."""
    truth, given = facts(Path(undisturbed)), lines()
    for line in given:
        reads, not_yet, wrong, seen = 0, 0, list[str](), set[int]()
        while not select.select([0], [], [], 0)[0]:
            try:
                found = facts(Path(line))
            except NotAStore as error:
                not_yet += 1
                wrong += [f"it was there and is not: {error}"] if seen else []
                time.sleep(0.002)
                continue
            except Exception as error:  # a torn read
                wrong.append(f"{type(error).__name__}: {error}")
                continue
            reads += 1
            wrong += [f"example {n}: {row}" for n, row in found.items() if truth[n] != row]
            wrong += [f"examples {sorted(seen - found.keys())} are gone"] if seen - found.keys() else []
            seen = set(found)
        next(given)
        print(json.dumps({"reads": reads, "not yet": not_yet, "wrong": wrong[:5]}), flush=True)


def facts(place: Path) -> dict[int, tuple[object, ...]]:
    """An aggregate of the maps of each example in the newest snapshot. ValueError for a wrong number of examples."""
    with open_store(place) as store:
        examples = [row["example"] for row in store.sql("select example from examples order by all")]
        listed = [store.info.segments[int(one.id)] for one in store.contents.snapshot.segments]
        if examples != [number for part in listed for number in range(part.first, part.stop)]:
            raise ValueError(f"examples {examples} in {[one.id for one in store.contents.snapshot.segments]}")
        found = {row["example"]: tuple(row.values()) for row in store.sql(AGGREGATE)}
        if [*found] != examples:
            raise ValueError(f"facts of {[*found]}, not of {examples}")
        return found


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
