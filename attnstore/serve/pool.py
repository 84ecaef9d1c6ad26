"""This file hands requests to a few workers, lets others wait in line, and kills the worker whose time is up."""

import asyncio
import contextlib
import logging
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping

from attnstore.serve import wire
from attnstore.serve.confine import bare_environment
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics
from attnstore.serve.problems import Problem

# The path is handed over, as a worker has no variables that could say it.
_START = "import sys; sys.path[:] = sys.argv[1:]; from attnstore.serve.worker import serve; serve()"
_START_TIME = 120.0
_END_TIME = 5.0
_PIPE = 2**20

log = logging.getLogger("attnstore.serve")


class Worker:
    """One process, which answers one request at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._log = asyncio.create_task(self._pass_on())

    @classmethod
    async def started(cls, start: wire.Head, environment: Mapping[str, str]) -> "Worker":
        """A worker that has opened its stores; Problem where it could not."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _START,
            *sys.path,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(environment),
            limit=_PIPE,
            start_new_session=True,  # an interruption from the terminal is for the server
        )
        worker = cls(process)
        try:
            answer, _ = await asyncio.wait_for(worker._exchange(start), _START_TIME)
        except (wire.Gone, TimeoutError):
            await worker.end()
            raise Problem("internal", "a worker did not start") from None
        except BaseException:
            await worker.end()
            raise
        if "problem" in answer:
            await worker.end()
            log.error("a worker did not start: %s", answer.get("said"))
            raise Problem(**answer["problem"])
        return worker

    async def ask(self, request: wire.Head, seconds: float) -> tuple[wire.Head, bytes]:
        """The answer; Problem `timeout` or `memory` where the worker had to be killed or died, and is of no more use."""
        try:
            return await asyncio.wait_for(self._exchange(request), seconds)
        except TimeoutError:
            await self.end()
            raise Problem("timeout", "the request ran into the time limit", "", "Ask for less") from None
        except wire.Gone:
            await self.end()
            raise Problem("memory", "the worker died of the request", "", "Ask for less") from None
        except BaseException:  # a request that was given up leaves a worker in the middle of it
            await self.end()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    async def end(self) -> None:
        """Kill it and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        with contextlib.suppress(TimeoutError):  # a pipe that is full is not seen to close
            await asyncio.wait_for(self._process.wait(), _END_TIME)
        self._log.cancel()

    async def _exchange(self, request: wire.Head) -> tuple[wire.Head, bytes]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(wire.packed(request))
            await self._process.stdin.drain()
        except OSError as error:
            raise wire.Gone from error
        return await wire.take(self._process.stdout)

    async def _pass_on(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError):  # a line longer than the buffer
            while line := await self._process.stderr.readline():
                log.warning("%s", line.decode(errors="replace").rstrip())


class Pool:
    """The workers, one more that stands by, and the line of those who wait; first come, first served.

    SQL of strangers never takes the last worker: maps and questions that ship go on while statements burn time.
    """

    def __init__(self, limits: Limits, stores: Mapping[str, wire.Head], metrics: Metrics) -> None:
        self.limits, self._metrics = limits, metrics
        self._start = {
            "stores": dict(stores),
            "time_limit": limits.time_limit,
            "memory": limits.memory,
            "threads": limits.threads_each,
            "address_space": limits.address_space,
        }
        self._environment = bare_environment(limits.threads_each)
        self._free: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()  # the one used last has most in its caches
        self._slots = asyncio.Semaphore(limits.workers)
        self._sql_slots = asyncio.Semaphore(max(limits.workers - 1, 1))
        self._waiting = 0
        self._all: set[Worker] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self) -> None:
        """Start the workers; Problem where they cannot."""
        workers = await asyncio.gather(*(self._started() for _ in range(self.limits.workers + 1)))
        for worker in workers:
            self._free.put_nowait(worker)

    async def close(self) -> None:
        """End every worker."""
        self._closed = True
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(*(worker.end() for worker in list(self._all)))
        self._all.clear()

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that run."""
        return [worker.pid for worker in self._all if worker.is_alive]

    async def ask(self, request: wire.Head, *, is_sql: bool = False) -> tuple[wire.Head, bytes]:
        """The answer to a request; Problem for what went wrong with it, `busy` where the line is too long."""
        slots = self._sql_slots if is_sql else None
        async with self._place(slots), self._place(self._slots):
            worker = await self._free.get()
            begun = time.perf_counter()
            seconds = self.limits.time_limit if is_sql else self.limits.question_time_limit
            try:
                head, body = await worker.ask(request, seconds + 1)
            finally:
                self._metrics.seconds.observe(time.perf_counter() - begun)
                if worker.is_alive:
                    self._free.put_nowait(worker)
                else:
                    self._replace(worker)
        if "problem" in head:
            raise Problem(**head["problem"])
        return head, body

    @contextlib.asynccontextmanager
    async def _place(self, slots: asyncio.Semaphore | None):  # type: ignore[no-untyped-def]
        if slots is None:
            yield
            return
        if slots.locked() and self._waiting >= self.limits.queue:
            raise self._busy()
        self._waiting += 1
        self._metrics.waiting.set(self._waiting)
        try:
            await asyncio.wait_for(slots.acquire(), self.limits.queue_wait)
        except TimeoutError:
            raise self._busy() from None
        finally:
            self._waiting -= 1
            self._metrics.waiting.set(self._waiting)
        try:
            yield
        finally:
            slots.release()

    def _busy(self) -> Problem:
        return Problem(
            "busy", f"{self._waiting} requests wait", "", "Come again", max(1, round(self.limits.time_limit))
        )

    def _replace(self, worker: Worker) -> None:
        self._all.discard(worker)
        self._metrics.killed.inc()
        if self._closed:
            return
        task = asyncio.create_task(self._refill())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _refill(self) -> None:
        pause = 0.5
        while not self._closed:
            try:
                self._free.put_nowait(await self._started())
                return
            except Problem:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 30)

    async def _started(self) -> Worker:
        worker = await Worker.started(self._start, self._environment)
        self._all.add(worker)
        return worker
