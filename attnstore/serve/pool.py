"""This file hands requests to a few workers, lets others wait in line, and replaces the workers that are gone."""

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from attnstore.serve import wire
from attnstore.serve.child import Unasked, Worker
from attnstore.serve.confine import bare_environment
from attnstore.serve.limits import Limits
from attnstore.serve.line import Full, Line
from attnstore.serve.metrics import Metrics
from attnstore.serve.problems import Problem

_GRACE = 1.0
"""Seconds after its limit that a statement has to end by itself, before its worker is killed."""

_PAUSE, _LONGEST_PAUSE = 0.5, 30.0

Given = TypeVar("Given")

log = logging.getLogger("attnstore.serve")


class Pool:
    """The workers, one more that stands by, and the line of those who wait.

    SQL of strangers never takes the last worker: maps and questions that ship go on while statements burn time. With
    one worker there is no other, and SQL takes that.
    """

    def __init__(self, limits: Limits, stores: Mapping[str, wire.Head], metrics: Metrics) -> None:
        self.limits, self._metrics = limits, metrics
        self._start: wire.Head = {
            "stores": dict(stores),
            "prepared": None,
            "time_limit": limits.time_limit,
            "memory": limits.memory,
            "threads": limits.threads_each,
            "address_space": limits.address_space,
        }
        self._environment = bare_environment(limits.threads_each)
        self._line: Line[Worker] = Line(limits.workers, max(limits.workers - 1, 1), limits.queue, limits.queue_wait)
        self._all: set[Worker] = set()
        self._busy: set[Worker] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def open(self, prepared: Path | None = None) -> None:
        """Start the workers, which look into the folder `prepared` before they compute a table.

        Problem where one cannot start, and then none is left.
        """
        self._start["prepared"] = None if prepared is None else str(prepared)
        starts = [asyncio.create_task(self._started()) for _ in range(self.limits.workers + 1)]
        try:
            await asyncio.gather(*starts)
        except BaseException:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            await self.close()
            raise

    async def close(self) -> None:
        """End every worker, also one that is starting; requests that run or wait are told `busy`."""
        self._closed = True
        self._line.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(worker.end() for worker in list(self._all)))
        self._all.clear()

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that run."""
        return [worker.pid for worker in self._all if worker.is_alive]

    @property
    def waiting(self) -> int:
        """Requests that wait for a worker."""
        return len(self._line)

    async def ask(
        self, request: wire.Head, *, is_sql: bool = False, seconds: float | None = None
    ) -> tuple[wire.Head, bytes]:
        """The answer to a request; Problem for what went wrong with it, `busy` where the line is too long.

        `is_sql` says that a stranger wrote SQL of it; the worker is killed after `seconds`, None for its kind's limit.

        Who is cancelled leaves the line. What a worker has begun is finished for nobody: a worker that is killed in the
        middle costs more than most requests do, and what it computes serves the next who asks.
        """
        key = f"{request.get('store') or request.get('stores')} {request.get('question', request['do'])}"
        if seconds is None:
            seconds = self.limits.time_limit if is_sql else self.limits.question_time_limit
        while True:
            worker = await self._turn(is_sql, key)
            work = self._keep(self._at(worker, request, seconds + _GRACE))
            try:
                head, body = await asyncio.shield(work)
            except Unasked:
                continue
            except asyncio.CancelledError:
                if work.cancelled():  # the pool was closed, and not this request given up
                    raise self._is_busy() from None
                raise
            if "problem" in head:
                raise Problem(**head["problem"])
            return head, body

    async def _turn(self, is_sql: bool, key: str) -> Worker:
        if self._closed:
            raise self._is_busy()
        self._metrics.waiting.set(len(self._line) + 1)
        try:
            return await self._line.take(is_sql, key)
        except Full:
            raise self._is_busy() from None
        finally:
            self._metrics.waiting.set(len(self._line))

    async def _at(self, worker: Worker, request: wire.Head, seconds: float) -> tuple[wire.Head, bytes]:
        begun = time.perf_counter()
        self._busy.add(worker)
        try:
            head, body = await worker.ask(request, seconds)
            if head.pop("broken", False):
                await worker.end()
            return head, body
        finally:
            self._metrics.seconds.observe(time.perf_counter() - begun)
            self._busy.discard(worker)
            if worker.is_alive:
                self._line.give(worker)
            else:
                self._replace(worker)

    def _is_busy(self) -> Problem:
        seconds = max(1, round(self.limits.time_limit))
        return Problem("busy", f"{len(self._line)} requests wait", "", "Come again", seconds)

    def _replace(self, worker: Worker) -> None:
        if worker not in self._all:  # it was seen to be gone before
            return
        self._all.discard(worker)
        self._line.drop(worker)
        self._metrics.workers.set(len(self._all))
        self._metrics.killed.inc()
        if not self._closed:
            self._keep(self._refill())

    async def _refill(self) -> None:
        pause = _PAUSE
        while not self._closed:
            try:
                await self._started()
                return
            except (Problem, OSError):  # such as no room for another process
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _look_after(self, worker: Worker) -> None:
        """Replace a worker that dies while nobody asks it: else the next request would be told of it."""
        await worker.gone()
        if worker not in self._busy:
            self._replace(worker)

    async def _started(self) -> None:
        worker = await Worker.started(self._start, self._environment)
        self._all.add(worker)
        self._metrics.workers.set(len(self._all))
        self._line.add(worker)
        self._keep(self._look_after(worker))

    def _keep(self, work: Coroutine[Any, Any, Given]) -> "asyncio.Task[Given]":
        """A task that `close` ends."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._is_done)
        return task

    def _is_done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()  # looked at here, since who asked may have gone away
        if error is not None and not isinstance(error, Problem | Unasked):
            log.error("a worker could not be asked or replaced", exc_info=error)
