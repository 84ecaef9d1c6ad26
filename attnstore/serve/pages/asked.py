"""This file asks for the pages: an answer rebuilt with its citation, or what to say in its place."""

import asyncio
import json
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from attnstore.catalogue.catalogue import questions
from attnstore.serve.problems import Problem
from attnstore.serve.published import Published
from attnstore.serve.service import Service, table_of
from attnstore.store.needs import there
from attnstore.store.result import Provenance, Result

TOLD = (
    "not-stored",
    "not-installed",
    "bad-parameter",
    "bad-sql",
    "refused",
    "not-found",
    "timeout",
    "memory",
    "too-large",
)
"""Problems that a page tells in place of an answer; for any other, such as busy, the page is about the problem."""

ABSENT = ("not-stored", "not-installed")
"""Those of a store that has no answer, where nothing is wrong with the address."""

PATIENCE = 2.0
"""Seconds that a page waits for the last of several answers."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer to a question, or the body of the problem with it."""

    result: Result | None
    problem: dict[str, Any] | None = None
    is_truncated: bool = False

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, none where there is no answer."""
        return list(self.result) if self.result is not None else []

    @property
    def status(self) -> int:
        """The HTTP status of a page that is about this answer alone."""
        if self.problem is None or self.problem["type"].rpartition("/")[2] in ABSENT:
            return 200
        return int(self.problem["status"])


def kind_of(store: Published, given: str | None) -> str | None:
    """The kind of attention that an address names, None for the store's first; Problem for one that it lacks."""
    if not given or given == store.store.kinds[0]:
        return None
    if given not in store.store.kinds:
        raise Problem("not-found", f"kind={given!r}", f"one of {', '.join(store.store.kinds)}")
    return given


def kind_params(kind: str | None) -> dict[str, object]:
    """The kind as a parameter of a question."""
    return {} if kind is None else {"kind": kind}


async def ask(
    service: Service, stores: list[Published], question: str, params: Mapping[str, object], where: str | None = None
) -> Asked:
    """The answer, of as many rows as one in JSON may have. Problem where there are no workers to ask."""
    try:
        answer = await service.ask(
            stores, question, params, where=where, form="arrow", max_rows=service.limits.max_rows
        )
    except Problem as problem:
        if problem.kind not in TOLD:
            raise
        return Asked(None, problem.body())
    table = await run_in_threadpool(table_of, answer)
    about = json.loads(table.schema.metadata[b"attnstore"])
    provenance = Provenance(**{name: value for name, value in about["cite"].items() if name != "versions"})
    return Asked(Result(table, provenance, service.question(question)), None, bool(answer.head["truncated"]))


async def those_soon(waited: Mapping[str, Coroutine[Any, Any, Asked]]) -> dict[str, Asked | None]:
    """Several answers by name, None for one that takes longer; that one goes on, and the next page finds it held."""
    tasks = {name: asyncio.create_task(one) for name, one in waited.items()}
    if not tasks:
        return {}
    done, late = await asyncio.wait(tasks.values(), timeout=PATIENCE)
    for task in late:
        task.add_done_callback(_heard)
    return {name: task.result() if task in done else None for name, task in tasks.items()}


async def absent(service: Service, store: Published, annotations: Iterable[str]) -> set[str]:
    """Those of the annotations that questions need (`words`, `value_norms`, …) which the store has not."""
    known = sorted(set(annotations))
    if not known:
        return set()
    text = ", ".join(f"exists(from {there(name)}) as has{index}" for index, name in enumerate(known))
    answer = await service.sql(store, f"select {text}", {}, form="arrow")
    row = table_of(answer).to_pylist()[0]
    return {name for index, name in enumerate(known) if not row[f"has{index}"]}


async def absent_of_questions(service: Service, store: Published) -> dict[str, list[str]]:
    """What the store lacks for each question as it stands, by the question's name."""
    needed = {
        name: [need.annotation for need in one.needs if need.holds(_defaults(name))]
        for name, one in questions().items()
        if not one.compares
    }
    lacking = await absent(service, store, (one for each in needed.values() for one in each))
    return {name: [one for one in each if one in lacking] for name, each in needed.items()}


def _defaults(question: str) -> dict[str, object]:
    return {name: param.default for name, param in questions()[question].params.items()}


def _heard(task: "asyncio.Task[Asked]") -> None:
    """Take what came too late, so that nobody is told of an error that nobody waits for."""
    if not task.cancelled():
        task.exception()
