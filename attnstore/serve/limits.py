"""This file holds what one answer, and all of them together, may cost; `/v1` shows the numbers, each can be set."""

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from attnstore.errors import BadInput

MIB = 2**20


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds. `threads` 0 shares the cores among the workers."""

    time_limit: float = 5.0
    """For one statement; a worker that is still at its request a second later is killed."""
    question_time_limit: float = 60.0
    """For a question that ships, which may compute facts from maps; the statement limit holds for each of its own."""
    max_rows: int = 10_000
    """Of an answer as JSON, CSV or a page."""
    max_arrow_rows: int = 1_000_000
    """Of an answer as Arrow."""
    max_bytes: int = 16 * MIB
    """Of an answer as JSON, CSV or a page."""
    max_arrow_bytes: int = 128 * MIB
    """Of an answer as Arrow."""
    max_body: int = 256 * 1024
    """Of a request."""
    memory: int = 1024 * MIB
    """Of DuckDB in one worker."""
    address_space: int = 6 * 1024 * MIB
    """Of one worker, as the operating system counts."""
    workers: int = 3
    """Processes that answer; another one stands by for one that is killed."""
    threads: int = 0
    """Of DuckDB in one worker."""
    queue: int = 64
    """Requests that may wait for a worker; more are told to come again."""
    queue_wait: float = 10.0
    """How long a request waits for a worker."""
    cache: int = 64 * MIB
    """Of answers to questions that are kept in memory."""
    prepared: int = 1024 * MIB
    """On disk, of tables that are computed from maps before somebody asks; 0 computes none."""
    held: int = 256 * MIB
    """Of answers that clients are fetching."""
    send_time: float = 30.0
    """How long a client may take for 64 KiB of an answer."""

    @property
    def threads_each(self) -> int:
        """Threads of DuckDB in one worker."""
        return self.threads or max(1, cores() // self.workers)

    def with_set(self, given: Mapping[str, float | int | None]) -> "Limits":
        """The same with other numbers; None leaves one as it is. BadInput for one that cannot be."""
        chosen = {name: value for name, value in given.items() if value is not None}
        for name, value in chosen.items():
            may_be_zero = name in ("threads", "cache", "queue", "prepared")
            if value < 0 or (value == 0 and not may_be_zero) or not math.isfinite(value):
                expected = "zero or more" if may_be_zero else "a finite number above zero"
                raise BadInput("setting a limit", f"{name}={value}", expected)
        return replace(self, **{name: type(getattr(self, name))(value) for name, value in chosen.items()})

    def shown(self) -> dict[str, float | int]:
        """Every limit by its name."""
        return {**asdict(self), "threads": self.threads_each}
