"""This file runs ingests of a small corpus in forked processes whose n-th file-system call fails, or ends them.

Calls are met where every library makes them, at the C library (`faults.c`, preloaded), so that what Arrow writes counts
as what Python writes. A prepared process imports everything once and forks for each run.
"""

import contextlib
import ctypes
import errno
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from attnstore.format.manifest import Snapshot

SOURCE = Path(__file__).with_name("faults.c")
REPOSITORY = Path(__file__).parents[2]
ENDED = 70
"""Exit status of a process that a fault ended."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at the n-th call; `stays` lets every later one fail with `number` too, as on a disk that is full."""

    what: int
    number: int = 0
    stays: bool = False


FAULTS = {
    "EIO": Fault(1, errno.EIO),
    "ENOSPC": Fault(1, errno.ENOSPC),
    "EACCES": Fault(1, errno.EACCES),
    "EIO from then on": Fault(1, errno.EIO, True),
    "ENOSPC from then on": Fault(1, errno.ENOSPC, True),
    "short write": Fault(2),  # half is written, and the answer says so: the writer has to go on
    "half, then ENOSPC": Fault(3, errno.ENOSPC, True),
    "exit": Fault(4),
    "exit after half a write": Fault(5),
    "EIO after it took effect": Fault(6, errno.EIO),
}


def shim(folder: Path) -> Path:
    """`faults.c` compiled into `folder`; the test is skipped where there is no C compiler."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if sys.platform != "linux" or compiler is None:
        pytest.skip("faults at the C library's calls need Linux and a C compiler (cc, gcc or clang)")
    place = folder / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", place, SOURCE, "-ldl", "-pthread"], check=True)
    return place


class Prepared:
    """A process that has imported all that an ingest needs, and forks for each task.

    `folder` takes the compiled shim. `facts` are those that the recipe keeps: most calls of a small ingest write them.
    """

    def __init__(self, folder: Path, facts: str = "standard") -> None:
        self._command = [sys.executable, "-m", "tests.survival.faults", facts]
        self._environment = {**os.environ, "LD_PRELOAD": str(shim(folder)), "OMP_NUM_THREADS": "1"}

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, text=True, env=self._environment, cwd=REPOSITORY
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.stdin.close() if self._process.stdin else None
        self._process.wait(60)
        self._process.stdout.close() if self._process.stdout else None

    def ingest(
        self,
        corpus: Path,
        store: Path,
        *,
        n: int = 0,
        fault: str = "exit",
        log: Path | None = None,
        below: Path | None = None,
    ) -> Mapping[str, Any]:
        """Run an ingest with a fault at its n-th call below `store`; none for 0. `log` is appended to.

        `below` names another folder whose calls count. Gives `status` of the process, and unless it was ended `seen`
        (calls) and `error` (a class and a text, or null).
        """
        return self._ask("ingest", str(corpus), str(store), n, fault, log and str(log), str(below or store))

    def resume(self, corpus: Path, store: Path) -> Mapping[str, Any]:
        """Verify a store, then ingest into it without a fault.

        Gives `before` (findings, or `no store`, `no snapshot`), `error`, `content` (hash of the snapshot) and `bytes`
        (a digest over every file in `segments` with its name).
        """
        return self._ask("resume", str(corpus), str(store))

    def _ask(self, *task: Any) -> Mapping[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(task), file=self._process.stdin, flush=True)
        answer: Mapping[str, Any] = json.loads(self._process.stdout.readline())
        return answer


# What follows runs in the prepared process and its children.


def _ingest(corpus: str, store: str, n: int, fault: str, log: str | None, below: str) -> dict[str, Any]:
    from attnstore.format.commit import commit
    from attnstore.job import run
    from tests.conftest import arrays_recipe

    calls, chosen = ctypes.CDLL(None), FAULTS[fault]
    if log is not None:
        calls.survival_record(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))

        def marked(root: Path, store_id: str) -> "Snapshot":
            made = commit(root, store_id)
            calls.survival_mark(str(made.number).encode())  # from here on it must survive
            return made

        run.__dict__["commit"] = marked
    calls.survival_arm(below.encode(), ctypes.c_long(n), chosen.what, chosen.number, chosen.stays)
    error = None
    try:
        run.ingest(arrays_recipe(Path(corpus), keep__facts=sys.argv[1]), store).close()
    except Exception as met:
        error = [type(met).__name__, str(met)]
    calls.survival_seen.restype = ctypes.c_long
    return {"seen": calls.survival_seen(), "error": error}


def _resume(corpus: str, store: str) -> dict[str, Any]:
    before = findings(Path(store))
    error = _ingest(corpus, store, 0, "exit", None, store)["error"]
    if error is not None:
        return {"before": before, "error": error}
    return {"before": before, "error": None, **contents(Path(store))}


def _imported(folder: str) -> dict[str, Any]:
    """What an ingest imports while it runs: done in the prepared process, its children need not do it each time."""
    from attnstore.job.run import ingest
    from tests.conftest import SENTENCES, arrays_recipe, write_arrays

    before, store = set(sys.modules), Path(folder, "warm.attn")
    ingest(arrays_recipe(write_arrays(Path(folder), SENTENCES[:1], layers=1, heads=1)), store).close()
    findings(store)
    return {"modules": sorted(set(sys.modules) - before)}


def findings(store: Path) -> list[str]:
    """What `verify` finds in a store, read to the last weight; one entry where nothing can be opened yet."""
    from attnstore.errors import NotAStore
    from attnstore.format.commit import snapshots
    from attnstore.format.verify import verify

    try:
        return [f"{one.rule} {one.where}: {one.found}" for one in verify(store, deep=True)]
    except NotAStore:
        if snapshots(store):
            raise
        return ["no snapshot" if (store / "store.json").exists() else "no store"]


def contents(store: Path) -> dict[str, str]:
    """`content`, the hash of the newest snapshot, and `bytes`, a digest over all published segments."""
    from attnstore.format.commit import latest

    digest, top = hashlib.sha256(), store / "segments"
    for path in sorted(path for path in top.rglob("*") if path.is_file()):
        name = path.relative_to(top).as_posix()
        if not name.startswith(".staging-"):
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return {"content": latest(store).content_hash, "bytes": digest.hexdigest()}


def forked(task: Callable[..., dict[str, Any]], arguments: Sequence[Any]) -> dict[str, Any]:
    """What a task gives in a forked process, with the `status` in which that ended; only this where it was ended."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reads)
            answer = json.dumps(task(*arguments)).encode()
            with os.fdopen(writes, "wb") as pipe:
                pipe.write(answer)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        answer = pipe.read()
    _, ended = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(ended), **(json.loads(answer) if answer else {})}


def small_segments(tokens: int = 20) -> None:
    """Let a segment close after so few tokens and a snapshot follow it, in this process and those that it forks."""
    from attnstore.job import plan, run

    plan.SEGMENT_TOKENS, run.SNAPSHOT_SECONDS = tokens, -1.0


def prepare() -> None:
    """Import what an ingest needs, and let segments be small, in this process and those that it forks."""
    small_segments()
    with tempfile.TemporaryDirectory() as folder:
        for name in forked(_imported, [folder])["modules"]:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def main() -> None:
    """Answer tasks, one a line, until the input ends."""
    prepare()
    tasks: dict[str, Callable[..., dict[str, Any]]] = {"ingest": _ingest, "resume": _resume}
    for line in sys.stdin:
        task, *arguments = json.loads(line)
        print(json.dumps(forked(tasks[task], arguments)), flush=True)


if __name__ == "__main__":
    main()
