"""This file is the line of those who wait for a worker: whose turn it is, and how long anybody waits."""

import asyncio
import time
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

_PATIENCE = 4
"""A request lets those pass that come so many times its own length later, and so short ones rarely wait for long."""

_LONGEST = 0.25
"""Seconds that it lets others pass at most."""

_LEARNED = 0.3
"""The part of the last time in what is expected the next time."""


class Full(Exception):
    """The line is too long, or somebody waited in it for too long."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[T]):
    """One who waits; `key` says what for."""

    is_limited: bool
    key: str
    due: float
    given: "asyncio.Future[T]"


@dataclass(frozen=True, slots=True)
class _Taken:
    """What was handed out, and when."""

    is_limited: bool
    key: str
    begun: float


class Line(Generic[T]):
    """Hands out what is ready, at most `places` at once, `limited` of them to limited requests.

    Who came first is served first, but short requests before long ones that came little earlier; how long one takes is
    known from the last ones of its key. A limited request that may not run yet lets the others pass. Of several that
    are ready, one that was used for the same key is taken, else the one that was used last: it has most in its caches.
    """

    def __init__(self, places: int, limited: int, length: int, seconds: float) -> None:
        self._places, self._limited, self._length, self._seconds = places, limited, length, seconds
        self._waiting: list[_Waiting[T]] = []
        self._ready: list[T] = []
        self._used: dict[T, set[str]] = {}
        self._taken: dict[T, _Taken] = {}
        self._expected: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, one: T) -> None:
        """Make one ready that was not there before."""
        self._used[one] = set()
        self._ready.append(one)
        self._hand_out()

    async def take(self, is_limited: bool, key: str = "") -> T:
        """One that is ready, now or when it is this request's turn; `give` or `drop` has to follow. Full."""
        due = time.monotonic() + min(_PATIENCE * self._expected.get(key, 0.0), _LONGEST)
        own: _Waiting[T] = _Waiting(is_limited, key, due, asyncio.get_running_loop().create_future())
        self._waiting.append(own)
        self._hand_out()
        if own.given.done():
            return own.given.result()
        if len(self._waiting) > self._length:
            self._waiting.remove(own)
            raise Full
        try:
            # Not `wait_for`, which may lose what was handed over in the moment of an interruption.
            await asyncio.wait([own.given], timeout=self._seconds)
        except asyncio.CancelledError:
            if own.given.done() and own.given.exception() is None:
                self.give(own.given.result())
            elif own in self._waiting:
                self._waiting.remove(own)
            raise
        if not own.given.done():
            self._waiting.remove(own)
            raise Full
        return own.given.result()

    def give(self, one: T) -> None:
        """Give back what was taken."""
        taken = self._taken.pop(one)
        seconds = time.monotonic() - taken.begun
        before = self._expected.get(taken.key, seconds)
        self._expected[taken.key] = before + _LEARNED * (seconds - before)
        self._ready.append(one)
        self._hand_out()

    def drop(self, one: T) -> None:
        """Forget one, wherever it is: it is of no more use."""
        self._taken.pop(one, None)
        self._used.pop(one, None)
        if one in self._ready:
            self._ready.remove(one)
        self._hand_out()

    def close(self) -> None:
        """Tell all who wait that it is Full."""
        while self._waiting:
            self._waiting.pop().given.set_exception(Full())

    def _hand_out(self) -> None:
        while self._ready and len(self._taken) < self._places:
            is_open = sum(taken.is_limited for taken in self._taken.values()) < self._limited
            allowed = [waiting for waiting in self._waiting if is_open or not waiting.is_limited]
            if not allowed:
                return
            first = min(allowed, key=lambda waiting: waiting.due)  # the earlier one of two that are due together
            self._waiting.remove(first)
            chosen = next((one for one in reversed(self._ready) if first.key in self._used[one]), self._ready[-1])
            self._ready.remove(chosen)
            self._used[chosen].add(first.key)
            self._taken[chosen] = _Taken(first.is_limited, first.key, time.monotonic())
            first.given.set_result(chosen)
