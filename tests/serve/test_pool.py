"""Tests of the pool with real workers: the line, and that no worker and no place is lost, whatever happens to them."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest

pytest.importorskip("fastapi")

from attnstore.serve.child import Worker
from attnstore.serve.confine import bare_environment
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics
from attnstore.serve.pool import Pool
from attnstore.serve.problems import Problem
from attnstore.serve.published import Published
from tests.serve.running import gone

pytestmark = pytest.mark.slow

PING = {"do": "ping"}
BOMB = "select count(*) from range(100000000) a, range(100000000) b where hash(a.range, b.range) = 7"


def sql(text: str, **more: Any) -> dict[str, Any]:
    """A request for a statement."""
    limits = {"form": "json", "max_rows": 100, "max_bytes": 10**6}
    return {"do": "sql", "store": "tiny", "sql": text, "params": {}, **limits, **more}


def question(name: str) -> dict[str, Any]:
    """A request for a question without parameters."""
    limits = {"form": "json", "max_rows": 100, "max_bytes": 10**6}
    return {"do": "ask", "stores": ["tiny"], "question": name, "params": {}, "where": None, **limits}


@contextlib.asynccontextmanager
async def opened(published: dict[str, Published], **limits: Any) -> AsyncIterator[Pool]:
    """A pool of real workers over the tiny store; afterwards none of its processes is left."""
    chosen = Limits(**{"workers": 2, "time_limit": 1.0, "queue_wait": 20.0, **limits})
    pool = Pool(chosen, {"tiny": published["tiny"].place()}, Metrics())
    await pool.open()
    started = set(pool.processes)
    try:
        yield pool
    finally:
        started |= set(pool.processes)
        await pool.close()
        assert gone(list(started))


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something holds."""
    for _ in range(600):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came to hold")


async def works(pool: Pool) -> None:
    """Every place can be used at once: nothing was lost."""
    await until(lambda: len(pool.processes) == pool.limits.workers + 1)
    answers = await asyncio.gather(*(pool.ask(question("heads/entropy")) for _ in range(pool.limits.workers)))
    assert {head["rows"] for head, _ in answers} == {6}
    assert pool.waiting == 0


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run one test, which must not hang."""
    asyncio.run(asyncio.wait_for(test, 120))


async def problem_of(answer: Awaitable[object]) -> Problem:
    """What went wrong."""
    with pytest.raises(Problem) as caught:
        await answer
    return caught.value


def test_who_came_first_is_served_first(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=1) as pool:
            order: list[int] = []

            async def ask(number: int) -> None:
                await pool.ask(PING if number % 3 else sql("select 1"), is_sql=not number % 3)
                order.append(number)

            slow = asyncio.create_task(pool.ask(sql("select sum(range) from range(20000000)"), is_sql=True))
            await asyncio.sleep(0)
            asked = []
            for number in range(12):
                asked.append(asyncio.create_task(ask(number)))
                await asyncio.sleep(0)
            assert pool.waiting == 12
            await asyncio.gather(slow, *asked)
            assert order == list(range(12))

    run(test())


def test_beyond_the_length_of_the_line_and_the_time_in_it_requests_are_told_to_come_again(
    published: dict[str, Published],
) -> None:
    async def test() -> None:
        async with opened(published, workers=1, queue=2, queue_wait=0.2, time_limit=3.0) as pool:
            slow = asyncio.create_task(pool.ask(sql(BOMB), is_sql=True))
            await asyncio.sleep(0.05)
            waiting = [asyncio.create_task(pool.ask(PING)) for _ in range(2)]
            await asyncio.sleep(0)
            refused = await problem_of(pool.ask(PING))
            assert (refused.kind, refused.status, refused.retry_after) == ("busy", 503, 3)
            assert not any(task.done() for task in waiting)
            for task in waiting:
                assert (await problem_of(task)).kind == "busy"
            assert not slow.done()
            assert (await problem_of(slow)).kind in ("timeout", "memory")
            await works(pool)

    run(test())


def test_no_line_at_all_still_serves_who_finds_a_free_worker(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=1, queue=0) as pool:
            for _ in range(3):
                await pool.ask(PING)

    run(test())


def test_statements_never_take_the_last_worker(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=2, time_limit=3.0) as pool:
            bombs = [asyncio.create_task(pool.ask(sql(BOMB), is_sql=True)) for _ in range(3)]
            await asyncio.sleep(0.1)
            assert pool.waiting == 2
            await pool.ask(PING)  # though statements wait before it
            assert not any(bomb.done() for bomb in bombs)
            for bomb in bombs:
                bomb.cancel()
            await asyncio.gather(*bombs, return_exceptions=True)
            assert pool.waiting == 0

    run(test())


def test_a_worker_that_is_killed_from_outside_while_it_rests_is_noticed_by_nobody(
    published: dict[str, Published],
) -> None:
    async def test() -> None:
        async with opened(published) as pool:
            for pid in pool.processes:
                os.kill(pid, signal.SIGKILL)
            await until(lambda: not pool.processes)
            await pool.ask(PING)
            await works(pool)

    run(test())


def test_a_worker_that_is_killed_at_work_costs_one_request(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, time_limit=5.0) as pool:
            before = set(pool.processes)
            slow = asyncio.create_task(pool.ask(sql(BOMB), is_sql=True))
            await asyncio.sleep(0.3)
            (busy,) = pool._busy
            os.kill(busy.pid, signal.SIGKILL)
            assert (await problem_of(slow)).kind == "memory"
            await works(pool)
            assert len(before & set(pool.processes)) == 2

    run(test())


def test_a_worker_that_does_not_come_back_in_time_is_killed_and_replaced(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=1, time_limit=0.5) as pool:
            before = set(pool.processes)
            (working,) = {worker for worker in pool._all if worker is pool._line._ready[-1]}
            os.kill(working.pid, signal.SIGSTOP)
            assert (await problem_of(pool.ask(sql("select 1"), is_sql=True))).kind == "timeout"
            await pool.ask(PING)  # by the one that stood by
            await works(pool)
            assert working.pid not in pool.processes
            assert len(before & set(pool.processes)) == 1

    run(test())


def test_many_workers_killed_at_once_leave_requests_waiting_and_not_failing(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published) as pool:
            for _ in range(2):
                await until(lambda: len(pool.processes) == 3)
                for pid in pool.processes:
                    os.kill(pid, signal.SIGKILL)
                await until(lambda: not pool.processes)
                heads = await asyncio.gather(*(pool.ask(question("heads/entropy")) for _ in range(6)))
                assert {head["rows"] for head, _ in heads} == {6}
            await works(pool)

    run(test())


def test_a_request_given_up_while_it_waits_leaves_the_line(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=1, time_limit=2.0) as pool:
            slow = asyncio.create_task(pool.ask(sql(BOMB), is_sql=True))
            await asyncio.sleep(0.05)
            waiting = [asyncio.create_task(pool.ask(PING)) for _ in range(5)]
            await asyncio.sleep(0.05)
            for task in waiting[::2]:
                task.cancel()
            await asyncio.sleep(0)
            assert pool.waiting == 2
            await problem_of(slow)
            assert [await task for task in waiting[1::2]] == [({}, b"")] * 2
            await works(pool)

    run(test())


def test_a_request_given_up_at_work_ends_by_itself_and_costs_no_worker(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=1, time_limit=10.0) as pool:
            before = set(pool.processes)
            slow = asyncio.create_task(pool.ask(sql("select sum(hash(range)) from range(50000000)"), is_sql=True))
            await asyncio.sleep(0.1)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            await pool.ask(PING)
            await works(pool)
            assert set(pool.processes) == before

    run(test())


def test_requests_given_up_at_any_moment_lose_no_place(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published) as pool:
            for number in range(40):
                tasks = [asyncio.create_task(pool.ask(PING, is_sql=bool(index % 2))) for index in range(5)]
                for _ in range(number % 8):
                    await asyncio.sleep(0)
                if number % 5 == 0:
                    await asyncio.sleep(0.0003 * number)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            await works(pool)

    run(test())


@pytest.mark.parametrize("answer", ["rubbish\\n" * 9, "\\0" * 12, "", "\\xff" * 64, "A" * 100_000])
def test_a_worker_that_sends_rubbish_is_given_up(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"import sys, time; sys.stdin.buffer.read(12); sys.stdout.buffer.write(b'{answer}'); time.sleep(0.2)"
    monkeypatch.setattr("attnstore.serve.child._START", text)

    async def test() -> None:
        begun = time.monotonic()
        said = await problem_of(Worker.started({}, bare_environment(1)))
        assert said.kind in ("internal",)
        assert time.monotonic() - begun < 60

    run(test())


def test_a_worker_whose_pipe_is_full_can_be_ended() -> None:
    """asyncio stops reading a pipe that nobody empties, and then never hears of the end of the process."""

    async def test() -> None:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", "cat /dev/zero", stdin=-1, stdout=-1, stderr=-1, limit=1000, start_new_session=True
        )
        worker = Worker(process)
        await asyncio.sleep(0.2)
        begun = time.monotonic()
        await worker.end()
        assert not worker.is_alive
        assert time.monotonic() - begun < 4

    run(test())


def test_a_pool_that_is_closed_while_its_workers_start_leaves_no_process(published: dict[str, Published]) -> None:
    async def test() -> None:
        for wait in (0.0, 0.02, 0.2, 0.5):
            own = _children()
            pool = Pool(Limits(workers=2), {"tiny": published["tiny"].place()}, Metrics())
            opening = asyncio.create_task(pool.open())
            await asyncio.sleep(wait)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            assert gone(list(_children() - own))

    run(test())


def test_close_ends_what_runs_what_waits_and_what_starts(published: dict[str, Published]) -> None:
    async def test() -> None:
        async with opened(published, workers=1, time_limit=30.0) as pool:
            slow = asyncio.create_task(pool.ask(sql(BOMB), is_sql=True))
            await asyncio.sleep(0.1)
            waiting = asyncio.create_task(pool.ask(PING))
            await asyncio.sleep(0)
            for pid in set(pool.processes) - {worker.pid for worker in pool._busy}:
                os.kill(pid, signal.SIGKILL)
            await until(lambda: len(pool.processes) == 1)
            await asyncio.sleep(0.2)  # in the middle of a start
            await pool.close()
            assert (await problem_of(slow)).kind == "busy"
            assert (await problem_of(waiting)).kind == "busy"
            assert (await problem_of(pool.ask(PING))).kind == "busy"
            assert pool.processes == []

    run(test())


def _children() -> set[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return {int(pid) for pid in file.read().split()}
