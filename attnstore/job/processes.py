"""This file runs workers as processes of this machine, each at the other end of a pipe."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from attnstore.job.pool import Died, Task, Work
from attnstore.job.source import cores
from attnstore.job.worker import result_of

# Started anew and not by multiprocessing, which would run the caller's own script once more in every worker.
_START = "import sys; sys.path[:] = sys.argv[2:]; from attnstore.job.worker import serve; serve(int(sys.argv[1]))"

THREADS = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
"""Read when torch, numba and zarrs are loaded: several workers must not each take all cores."""


def thread_limits(threads: int) -> dict[str, str]:
    """The environment of a worker that may use so many threads at a time; what the caller has set stays."""
    return {name: os.environ.get(name) or str(threads) for name in THREADS}


class Processes:
    """Workers on this machine, which share its cores evenly."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._limits = thread_limits(max(cores() // size, 1))

    def start(self, work: Work) -> "Process":
        """A new process, which opens its tools."""
        return Process(work, self._limits)

    def wait(self, workers: Sequence["Process"]) -> Sequence["Process"]:
        """Those of the workers that answered or ended; waits for one."""
        ready = multiprocessing.connection.wait([worker.connection for worker in workers])
        return [worker for worker in workers if worker.connection in ready]


class Process:
    """One worker. It ends with its pipe, also where this process is killed."""

    def __init__(self, work: Work, environment: dict[str, str]) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno()), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **environment},
                pass_fds=[theirs.fileno()],
                process_group=0,  # an interruption from the terminal is for the process that gives out the tasks
            )
        self._send(work)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def give(self, task: Task) -> None:
        """Let it do a task."""
        self._send(task)

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it is gone: `take` says so
            self.connection.send(message)

    def take(self) -> Any:
        """What it gave; Died where it is gone, or the error that it met."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            raise Died(self._how_it_ended()) from None
        return result_of(answer)

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "closing its pipe"
        return signal.Signals(-status).name if status < 0 else f"exit status {status}"

    def end(self) -> None:
        """Stop it at once, and wait until it is gone."""
        self._process.kill()
        self._process.wait()
        self.connection.close()
