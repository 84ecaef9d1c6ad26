"""This file tests what a worker says of itself, in this process: whether it can go on after an error."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from attnstore.serve.limits import Limits
from attnstore.serve.worker import Worker
from attnstore.store.sql_errors import typed
from attnstore.store.store import open as open_store


def request(**given: object) -> dict[str, Any]:
    return {"store": "tiny", "params": {}, "form": "json", "max_rows": 10, "max_bytes": 10**6, **given}


@pytest.fixture
def worker(tiny_store: Path) -> Worker:
    limits = Limits()
    with open_store(tiny_store) as store:
        place = {
            "path": str(tiny_store),
            "snapshot": store.snapshot.number,
            "content_hash": store.snapshot.content_hash,
        }
    stores = {"stores": {"tiny": place}, "prepared": None}
    return Worker({"time_limit": limits.time_limit, "memory": limits.memory, "threads": 1, **stores})


def test_a_worker_whose_engine_died_says_that_it_is_broken_and_tells_no_address(worker: Worker) -> None:
    trace = 'INTERNAL Error: {"exception_message":"…","stack_trace":"\\n/opt/lib/_duckdb.so(+0x17) [0x7f1e]"}'

    def dies(text: str) -> None:
        error = duckdb.InternalException(trace)
        raise typed(error, "running SQL") from error

    worker._gates["tiny"] = SimpleNamespace(check=dies)  # type: ignore[assignment]
    head, _ = worker.answer(request(do="sql", sql="select 1"))
    assert head["broken"]
    assert head["problem"]["kind"] == "bad-sql"
    assert "0x" not in str(head)
    assert "/opt" not in str(head)


def test_a_worker_whose_engine_is_gone_says_so_to_whoever_asks_next(worker: Worker) -> None:
    worker._stores["tiny"].engine.database.close()
    assert worker.answer({"do": "ping"})[0]["broken"]
    assert worker.answer(request(do="sql", sql="select 1"))[0]["broken"]


def test_an_error_of_a_statement_breaks_nothing(worker: Worker) -> None:
    head, _ = worker.answer(request(do="sql", sql="select nothing_there from words"))
    assert head["problem"]["kind"] == "not-found"
    assert not head["broken"]
    assert worker.answer({"do": "ping"}) == ({}, b"")


def test_a_condition_runs_alone_before_its_question(worker: Worker) -> None:
    asked = request(do="condition", stores=["tiny"], question="heads/entropy")
    assert worker.answer({**asked, "where": "n_tokens > 1"}) == ({}, b"")
    head, _ = worker.answer({**asked, "where": "1 = 1) or (select 1 from read_csv('x')"})
    assert head["problem"]["kind"] == "refused"


def test_behind_walls_few_conditions_are_held(worker: Worker) -> None:
    for least in range(6):
        asked = request(do="ask", stores=["tiny"], question="heads/entropy", where=f"n_tokens > {least}")
        head, _ = worker.answer(asked)
        assert "problem" not in head
    held = worker._stores["tiny"].engine.computed._held
    assert sum(where is not None for where, _ in held) <= 2
