"""Tests of the kept answers: one flight for all who ask the same, room for the last used, no failure kept."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from attnstore.serve.answers import Answers, key_of
from attnstore.serve.metrics import Metrics
from attnstore.serve.problems import Problem

Given = tuple[dict[str, Any], bytes]


class Source:
    """Something that answers when it is told to, and counts how often it was asked."""

    def __init__(self, size: int = 10) -> None:
        self.asked, self.ended, self.size = 0, 0, size
        self.open = asyncio.Event()

    async def __call__(self) -> Given:
        """The answer, once it may be given."""
        self.asked += 1
        try:
            await self.open.wait()
        finally:
            self.ended += 1
        return {"number": self.asked}, b"x" * self.size


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run one test, which must not hang."""
    asyncio.run(asyncio.wait_for(test, 30))


def test_those_who_ask_the_same_at_once_wait_for_one_answer() -> None:
    async def test() -> None:
        answers, source = Answers(10**6, Metrics()), Source()
        tasks = [asyncio.create_task(answers.get("a", source)) for _ in range(20)]
        await asyncio.sleep(0)
        source.open.set()
        found = await asyncio.gather(*tasks)
        assert source.asked == 1
        assert all(answer is found[0] for answer in found)
        assert (await answers.get("a", source)) is found[0]
        assert source.asked == 1
        await answers.get("b", source)
        assert source.asked == 2

    run(test())


def test_a_failure_reaches_all_who_wait_and_is_not_kept() -> None:
    async def test() -> None:
        answers, asked = Answers(10**6, Metrics()), 0

        async def fails() -> Given:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0.01)
            raise Problem("busy", "so many wait")

        found = await asyncio.gather(*(answers.get("a", fails) for _ in range(5)), return_exceptions=True)
        assert [getattr(error, "kind", None) for error in found] == ["busy"] * 5
        assert asked == 1
        source = Source()
        source.open.set()
        assert (await answers.get("a", source)).head == {"number": 1}

    run(test())


def test_one_who_goes_away_leaves_the_others_their_answer() -> None:
    async def test() -> None:
        answers, source = Answers(10**6, Metrics()), Source()
        first, second = (asyncio.create_task(answers.get("a", source)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        source.open.set()
        assert (await second).head == {"number": 1}
        assert source.asked == 1

    run(test())


def test_where_all_go_away_nobody_asks_any_more_and_the_next_begins_anew() -> None:
    async def test() -> None:
        answers, source = Answers(10**6, Metrics()), Source()
        tasks = [asyncio.create_task(answers.get("a", source)) for _ in range(3)]
        await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)
        assert (source.asked, source.ended) == (1, 1)
        source.open.set()
        assert (await answers.get("a", source)).head == {"number": 2}

    run(test())


def test_the_answer_that_was_not_used_for_longest_makes_room() -> None:
    async def test() -> None:
        answers = Answers(10 * (1024 + 100), Metrics())
        source = Source(100)
        source.open.set()
        for number in range(10):
            await answers.get(str(number), source)
        assert answers.known("0") is not None  # which was used now
        await answers.get("10", source)
        assert [number for number in range(11) if answers.known(str(number)) is None] == [1]

    run(test())


def test_the_bytes_that_are_held_never_pass_the_limit_and_one_large_answer_is_not_kept() -> None:
    async def test() -> None:
        limit = 100_000
        answers = Answers(limit, Metrics())
        for number in range(200):
            source = Source(number * 300)
            source.open.set()
            await answers.get(str(number), source)
            held = sum(len(answer.body) + 1024 for answer in answers._held.values())
            assert held == answers._bytes <= limit
            assert (answers.known(str(number)) is not None) == (number * 300 + 1024 <= limit // 4)

    run(test())


def test_with_no_room_nothing_is_kept() -> None:
    async def test() -> None:
        answers, source = Answers(0, Metrics()), Source(0)
        source.open.set()
        for number in range(3):
            assert (await answers.get("a", source)).head == {"number": number + 1}

    run(test())


def test_keys_differ_where_anything_differs_and_not_by_order() -> None:
    keys = {key_of("a", {"x": 1}), key_of("a", {"x": "1"}), key_of("a", {"x": None}), key_of("a", {}), key_of("b", {})}
    assert len(keys) == 5
    assert key_of({"x": 1, "y": 2}) == key_of({"y": 2, "x": 1})
