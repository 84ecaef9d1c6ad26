"""This file starts the process that computes tables beforehand, and ends it with the service."""

import asyncio
import contextlib
import json
import logging
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from attnstore.serve.confine import bare_environment
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics

# The path is handed over, as the process has no variables that could say it.
_START = "import sys; sys.path[:] = sys.argv[2:]; from attnstore.serve.prepare import main; main()"

log = logging.getLogger("attnstore.serve")


@contextlib.asynccontextmanager
async def preparing(
    stores: Mapping[str, Mapping[str, Any]], limits: Limits, metrics: Metrics
) -> AsyncIterator[Path | None]:
    """The folder in which prepared tables appear, while it is filled and afterwards; None where none are wanted."""
    if not limits.prepared:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="attnstore-serve-", ignore_cleanup_errors=True) as folder:
        process = await _started(stores, Path(folder), limits)
        metrics.preparing.set(1)
        following = asyncio.create_task(_follow(process, metrics))
        try:
            yield Path(folder)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await following


async def _started(stores: Mapping[str, Mapping[str, Any]], folder: Path, limits: Limits) -> Process:
    start = {
        "stores": dict(stores),
        "folder": str(folder),
        "limit": limits.prepared,
        "address_space": limits.address_space,
        "memory": limits.memory,
        "seconds": limits.question_time_limit,
    }
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _START,
        json.dumps(start),
        *sys.path,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        env=bare_environment(1),
        start_new_session=True,  # an interruption from the terminal is for the server
    )


async def _follow(process: Process, metrics: Metrics) -> None:
    _, said = await process.communicate()
    metrics.preparing.set(0)
    if said:
        log.warning("%s", said.decode(errors="replace").rstrip())
