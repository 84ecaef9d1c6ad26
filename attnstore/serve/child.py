"""This file is a worker as the server sees it: a process that is started, asked, and killed when its time is up."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping

from attnstore.serve import wire
from attnstore.serve.problems import Problem

# The path is handed over, as a worker has no variables that could say it.
_START = "import sys; sys.path[:] = sys.argv[1:]; from attnstore.serve.worker import serve; serve()"
_START_TIME = 120.0
_PIPE = 2**20
_SAID = 4096

log = logging.getLogger("attnstore.serve")


class Unasked(Exception):
    """The worker was gone before it had the request: another one may take it."""


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
        except (wire.Gone, Unasked, TimeoutError):
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
        """The answer. Problem `timeout` or `memory`, or Unasked, where the worker is gone, killed for it or dead."""
        try:
            return await asyncio.wait_for(self._exchange(request), seconds)
        except TimeoutError:
            await self.end()
            raise Problem("timeout", "the request ran into the time limit", "", "Ask for less") from None
        except wire.Gone:
            await self.end()
            raise Problem("memory", "the worker died of the request", "", "Ask for less") from None
        except BaseException:  # in the middle of a request it is of no more use
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

    async def gone(self) -> None:
        """Return when the process has ended, by whatever."""
        await self._process.wait()

    async def end(self) -> None:
        """Kill it and return when it is gone, also where whoever waits for that is cancelled."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # It leads a group of its own, so that what it started goes with it.
            os.killpg(self.pid, signal.SIGKILL) if hasattr(os, "killpg") else self._process.kill()
        ending = asyncio.create_task(self._ended())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def _ended(self) -> None:
        # asyncio tells of the end of a process when its pipes have ended, and one that nobody empties does not.
        assert self._process.stdout is not None
        with contextlib.suppress(RuntimeError):  # whoever still reads empties it
            while await self._process.stdout.read(_PIPE):
                pass
        await self._process.wait()
        await self._log

    async def _exchange(self, request: wire.Head) -> tuple[wire.Head, bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if not self.is_alive:
            raise Unasked
        try:
            self._process.stdin.write(wire.packed(request))
            await self._process.stdin.drain()
        except OSError as error:
            raise Unasked from error
        return await wire.take(self._process.stdout)

    async def _pass_on(self) -> None:
        assert self._process.stderr is not None
        while said := await self._process.stderr.read(_SAID):
            log.warning("%s", said.decode(errors="replace").rstrip())
