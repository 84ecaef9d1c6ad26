"""This file is the line of those who wait for a worker: first come, first served, and only so long."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class Full(Exception):
    """The line is too long, or somebody waited in it for too long."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[T]):
    """One who waits; `key` says what for."""

    is_limited: bool
    key: str
    given: "asyncio.Future[T]"


class Line(Generic[T]):
    """Hands out what is ready, at most `places` at once, `limited` of them to limited requests.

    A limited request that may not run yet lets the others pass. Of several that are ready, one that was used for the
    same key is taken, else the one that was used last: it has most in its caches.
    """

    def __init__(self, places: int, limited: int, length: int, seconds: float) -> None:
        self._places, self._limited, self._length, self._seconds = places, limited, length, seconds
        self._waiting: deque[_Waiting[T]] = deque()
        self._ready: list[T] = []
        self._used: dict[T, set[str]] = {}
        self._taken: dict[T, bool] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, one: T) -> None:
        """Make one ready that was not there before."""
        self._used[one] = set()
        self._ready.append(one)
        self._hand_out()

    async def take(self, is_limited: bool, key: str = "") -> T:
        """One that is ready, now or when it is this request's turn; `give` or `drop` has to follow. Full."""
        own: _Waiting[T] = _Waiting(is_limited, key, asyncio.get_running_loop().create_future())
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
        del self._taken[one]
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
            self._waiting.popleft().given.set_exception(Full())

    def _hand_out(self) -> None:
        while self._ready and len(self._taken) < self._places:
            is_open = sum(self._taken.values()) < self._limited
            first = next((waiting for waiting in self._waiting if is_open or not waiting.is_limited), None)
            if first is None:
                return
            self._waiting.remove(first)
            chosen = next((one for one in reversed(self._ready) if first.key in self._used[one]), self._ready[-1])
            self._ready.remove(chosen)
            self._used[chosen].add(first.key)
            self._taken[chosen] = first.is_limited
            first.given.set_result(chosen)
