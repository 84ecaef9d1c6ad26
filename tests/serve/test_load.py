"""Tests of a server under load: only answers and 503, whoever else is there, and nothing that grows or stays behind."""

import os
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.serve.running import Running, gone, serving

pytestmark = pytest.mark.slow

BOMB = "select levenshtein(repeat('ab', 200000), repeat('ba', 200000))"
FRESH = {"cache-control": "no-cache"}


def ask(running: Running, paths: list[str], until: float, found: Counter[int], headers: dict[str, str]) -> None:
    """One client that asks again as soon as it has its answer."""
    with running.client(headers=headers) as client:
        while time.monotonic() < until:
            for path in paths:
                try:
                    found[client.get(path).status_code] += 1
                except httpx.HTTPError as error:
                    found[type(error).__name__] += 1  # type: ignore[index]
                if time.monotonic() > until:
                    break


def load(running: Running, plans: list[tuple[int, list[str], dict[str, str]]], seconds: float) -> list[Counter[int]]:
    """What each kind of client got: so many clients of it, their addresses, their headers."""
    until = time.monotonic() + seconds
    found: list[Counter[int]] = [Counter() for _ in plans]
    threads = [
        threading.Thread(target=ask, args=(running, paths, until, own, headers))
        for own, (number, paths, headers) in zip(found, plans, strict=True)
        for _ in range(number)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def sql(text: str) -> str:
    """The address of a statement."""
    return str(httpx.URL("/v1/query", params={"sql": text}))


def files_of(running: Running) -> int:
    """Open files of the server and its workers."""
    return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in (running.process.pid, *running.children()))


QUESTIONS = ["/v1/questions/heads/entropy", "/v1/questions/relations/best", "/v1/questions/clusters/labels"]
OTHERS = ["/v1/attention/0/1/2", "/v1/stores", "/v1", "/v1/attention/3/0/1?format=npy", "/metrics"]
STATEMENTS = [sql("select count(*) from words"), sql("from examples"), sql("select avg(weight) from attention")]


def test_mixed_clients_get_answers_or_503_and_nothing_grows(tiny_store: Path) -> None:
    with serving(f"tiny={tiny_store}", "--workers", "2", "--queue", "16") as running:
        plans = [(12, QUESTIONS, FRESH), (10, [*QUESTIONS, *OTHERS], {}), (10, STATEMENTS, {})]
        load(running, plans, 4)
        files, children = files_of(running), set(running.children())
        found = sum(load(running, plans, 8), Counter[int]())
        assert set(found) <= {200, 503}, found
        assert found[200] > 100
        assert set(running.children()) == children
        time.sleep(1)  # until the connections of the clients are closed
        assert files_of(running) <= files + 8
        pids = running.children()
        assert running.stop() == 0
        assert gone(pids)


def test_honest_clients_have_answers_while_workers_are_killed(tiny_store: Path) -> None:
    with serving(f"tiny={tiny_store}", "--workers", "2", "--time-limit", "0.5") as running:
        before = set(running.children())
        honest, bombs = load(running, [(4, QUESTIONS, FRESH), (2, [sql(BOMB)], {})], 10)
        assert set(honest) == {200}, honest
        assert set(bombs) <= {422, 503}, bombs
        assert set(running.children()) != before
        until = time.monotonic() + 30
        while len(running.children()) < 3 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(running.children()) == 3
        with running.client() as client:
            assert client.get(QUESTIONS[0], headers=FRESH).status_code == 200
        pids = running.children()
        assert running.stop() == 0
        assert gone(pids)
