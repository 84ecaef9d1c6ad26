"""This file runs jobs on a store in processes that die by SIGKILL at their n-th step on the file system.

`python -m tests.survival.dying` is a process that has everything imported and no thread: it forks one child for each
line of JSON on standard input, and answers with the child's exit status. Starting Python for each would take a second.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

STEPS = ("open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir")
"""Audit events that are steps on the file system. Every sync opens what it syncs."""


def die_at(step: int, root: str) -> None:
    """Let this process be killed right before the step of that number, from 1, on a path below `root`."""
    count = 0

    def watch(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        if event in STEPS and any(isinstance(path, str | os.PathLike) and root in os.fspath(path) for path in args[:2]):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def do(job: dict[str, Any]) -> None:
    """Build and commit a segment, collect garbage, or resume the whole ingest; killed at a step where one is named."""
    from attnstore.format.commit import commit
    from attnstore.format.manifest import read_store
    from attnstore.job import parts
    from attnstore.job.run import ingest
    from attnstore.share.collect import gc
    from tests.survival.growing import recipe_of

    if job.get("step"):
        die_at(job["step"], job["root"])
    root = Path(job["root"])
    match job["do"]:
        case "segment":
            parts.run(root, segments=(job["segment"], job["segment"]))
            commit(root, read_store(root).store_id)
        case "ingest":
            ingest(recipe_of(Path(job["corpus"])), root).close()
        case "gc":
            gc(root, 0, superseded=True)


class Forks:
    """The process that forks: `run` gives the exit status of a job, -9 where it was killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.survival.dying"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def run(self, what: str, root: Path, **job: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": what, "root": str(root), **job}) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        assert self.process.stdout is not None
        self.process.stdout.close()


def _serve() -> None:
    # Imported here, once: what a child imports is lost with it. pyarrow asks for pandas when it makes its first table.
    ours = ("attnstore.job.parts", "attnstore.share.collect", "tests.survival.growing")
    for name in (*ours, "pandas", "pyarrow.compute"):
        import_module(name)

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                do(json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
