"""This file runs workers as actors on a Ray cluster, one model each."""

import contextlib
import logging
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput, MissingExtra
from attnstore.job.pool import Died, Task, Work
from attnstore.job.processes import thread_limits
from attnstore.job.worker import Workplace, result_of

# Ray makes a token when a cluster is first started on a machine. `ray start` asks for it from then on, and `ray.init`
# with an address in full does not send it, unless this is set before Ray is loaded.
if (Path.home() / ".ray" / "auth_token").is_file():
    os.environ.setdefault("RAY_AUTH_MODE", "token")

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ImportError as error:
    raise MissingExtra("handing work to Ray", "ray", "ray") from error

CONNECT_SECONDS = 5.0
"""How long a cluster may take to accept a connection."""


class Actors:
    """Workers on the cluster at an address; as many as it has CPUs or, for a device of CUDA, GPUs, unless told."""

    def __init__(self, address: str, workers: int | None, device: str, doing: str) -> None:
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            _connect(address, doing)
        on_gpu = device.startswith("cuda")
        what = "GPU" if on_gpu else "CPU"
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        has = [int(node.get(what, 0)) for node in nodes]
        self.size = workers or sum(has)
        # Ray waits for ever for what no node has: each worker must fit on one.
        cpus = 1 if on_gpu else max([n for n in range(1, max(has, default=0) + 1) if _fit(has, n) >= self.size] or [1])
        if not 1 <= self.size <= _fit(has, 1):
            self.__exit__(None, None, None)
            found = f"{sum(has)} {what}s on the cluster at {address}"
            raise BadInput(doing, found, f"one for each of {self.size or 'the'} workers")
        limits = {"env_vars": thread_limits(cpus)}
        self._kind = ray.remote(num_cpus=cpus, num_gpus=int(on_gpu), max_restarts=0, runtime_env=limits)(_Actor)

    def start(self, work: Work) -> "Actor":
        """A new actor, which opens its tools when it has found its place."""
        return Actor(self._kind.remote(work, os.getcwd()))

    def wait(self, workers: Sequence["Actor"]) -> Sequence["Actor"]:
        """Those of the workers that answered or died; waits for one."""
        ready, _ = ray.wait([worker.answer for worker in workers], num_returns=1)
        return [worker for worker in workers if worker.answer in ready]

    def __enter__(self) -> "Actors":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Leave the cluster, unless this process was connected before."""
        if self._is_ours:
            ray.shutdown()


class Actor:
    """One worker on the cluster."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.answer = handle.open.remote()

    def give(self, task: Task) -> None:
        """Let it do a task."""
        self.answer = self.handle.run.remote(task)

    def take(self) -> Any:
        """What it gave; Died where it is gone, or the error that it met."""
        try:
            answer: Any = ray.get(self.answer)
        except RayTaskError:
            raise  # what it was given could not be read
        except RayError as error:
            raise Died(str(error).partition("\n")[0]) from None
        return result_of(answer)

    def end(self) -> None:
        """Stop it at once."""
        with contextlib.suppress(RayError):
            ray.kill(self.handle)


class _Actor:
    """What lives on the cluster."""

    def __init__(self, work: Work, folder: str) -> None:
        with contextlib.suppress(OSError):
            os.chdir(folder)  # a model's folder may be given as seen from there
        self._place = Workplace(work)

    def open(self) -> tuple[bool, Any]:
        return self._place.open()

    def run(self, task: Task) -> tuple[bool, Any]:
        return self._place.run(task)


def _fit(has: Sequence[int], each: int) -> int:
    """Workers that fit on the nodes where each needs so many CPUs or GPUs of one node."""
    return sum(number // each for number in has)


def _connect(address: str, doing: str) -> None:
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():
            # Ray itself tries for ten minutes and says so line by line.
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (RayError, OSError, RuntimeError, ValueError) as error:
        found = f"no Ray at {address}: {' '.join(str(error).split())[:200]}"
        expected = "the address of a running cluster, HOST:PORT"
        raise BadInput(doing, found, expected, "Start one: ray start --head --port=6379") from error
