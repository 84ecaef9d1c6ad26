"""This file lets a file-system step fail, as where a process is killed or the disk is full."""

import os
from collections.abc import Callable
from typing import Any

import pytest

STEPS = ("fsync", "link", "rename", "mkdir", "unlink")


class Stop(BaseException):
    """Stands for the end of the process."""


def fail_at(monkeypatch: pytest.MonkeyPatch, n: int, error: Callable[[], BaseException]) -> list[int]:
    """Let the n-th file-system step of the run fail, and every later one too if the process is gone."""
    seen = [0]
    for name in STEPS:
        # What fsync does to the disk is not seen by a test that keeps the page cache: leave it out.
        real = getattr(os, name) if name != "fsync" else lambda descriptor: None

        def step(*args: Any, real: Any = real, **kwargs: Any) -> Any:
            seen[0] += 1
            if seen[0] == n or (seen[0] > n and isinstance(error(), Stop)):
                raise error()
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, step)
    return seen
