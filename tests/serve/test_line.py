"""Tests of the line for a worker: whose turn it is."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from attnstore.serve.line import Full, Line


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run one test, which must not hang."""
    asyncio.run(asyncio.wait_for(test, 30))


async def order(line: Line[str], keys: list[str], limited: frozenset[str] = frozenset()) -> list[str]:
    """Let requests of these keys wait while "w" is taken; the keys in the order in which they get it."""
    found: list[str] = []
    await line.take(False, "first")

    async def one(key: str) -> None:
        worker = await line.take(key in limited, key)
        found.append(key)
        line.give(worker)

    tasks = []
    for key in keys:
        tasks.append(asyncio.create_task(one(key)))
        await asyncio.sleep(0.001)
    line.give("w")
    await asyncio.gather(*tasks)
    return found


async def taking(line: Line[str], key: str, seconds: float) -> None:
    """One request of this key that takes so long."""
    worker = await line.take(False, key)
    await asyncio.sleep(seconds)
    line.give(worker)


def test_requests_of_unknown_length_are_served_as_they_came() -> None:
    async def test() -> None:
        line: Line[str] = Line(1, 1, 10, 10.0)
        line.add("w")
        assert await order(line, ["a", "b", "c"]) == ["a", "b", "c"]

    run(test())


def test_a_long_request_lets_short_ones_pass_that_came_little_later() -> None:
    async def test() -> None:
        line: Line[str] = Line(1, 1, 10, 10.0)
        line.add("w")
        await taking(line, "long", 0.1)
        await taking(line, "short", 0.001)
        assert await order(line, ["long", "short", "long", "short"]) == ["short", "short", "long", "long"]

    run(test())


def test_a_long_request_does_not_wait_for_ever() -> None:
    async def test() -> None:
        line: Line[str] = Line(1, 1, 1000, 10.0)
        line.add("w")
        await taking(line, "long", 0.3)
        await taking(line, "short", 0.01)
        found: list[str] = []
        stopped = asyncio.Event()

        async def again() -> None:
            while not stopped.is_set():
                await taking(line, "short", 0.005)
                found.append("short")

        askers = [asyncio.create_task(again()) for _ in range(4)]
        await asyncio.sleep(0.02)
        worker = await line.take(False, "long")  # there is always a short one that waits
        line.give(worker)
        stopped.set()
        await asyncio.gather(*askers)
        assert len(found) > 5

    run(test())


def test_a_limited_request_lets_others_pass_and_a_full_line_says_so() -> None:
    async def test() -> None:
        line: Line[str] = Line(2, 1, 1, 0.2)
        line.add("v")
        line.add("w")
        one = await line.take(True, "sql")
        waiting = asyncio.create_task(line.take(True, "sql"))
        await asyncio.sleep(0)
        other = await line.take(False, "map")  # passes the one that waits
        assert {one, other} == {"v", "w"}
        with pytest.raises(Full):
            await line.take(False, "map")  # the line is full
        with pytest.raises(Full):
            await waiting  # it waited too long

    run(test())
