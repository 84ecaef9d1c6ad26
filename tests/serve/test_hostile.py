"""This file tests all walls together: real workers, each hostile statement followed by an honest one that must work."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import attnstore
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics
from attnstore.serve.pool import Pool
from attnstore.serve.problems import KINDS, Problem
from attnstore.serve.published import publish
from tests.serve.hostile import Hostile, honest, hostile, parameters

pytestmark = pytest.mark.slow

MIB = 2**20
SMALL = Limits(
    time_limit=1.0,
    question_time_limit=2.0,
    max_rows=1_000,
    max_bytes=MIB,
    memory=256 * MIB,
    address_space=4 * 1024 * MIB,
    workers=2,
    threads=1,
    queue_wait=60.0,
)
SECRET = "planted-7e1c5f"
"""A value of the server's environment that no worker may know."""
FORMS = ("json", "csv", "arrow")
Ask = Callable[..., Coroutine[Any, Any, tuple[dict[str, Any], bytes]]]


@asynccontextmanager
async def asking(store: Path, limits: Limits) -> AsyncIterator[Ask]:
    """A function that asks real workers about a store: a statement, or a question with `where`."""
    pool = Pool(limits, {name: one.place() for name, one in publish([("tiny", store)]).items()}, Metrics())
    await pool.open()

    async def ask(
        text: str, form: str = "json", params: dict[str, object] | None = None, *, where: bool = False
    ) -> Any:
        common = {"form": form, "max_rows": limits.max_rows, "max_bytes": limits.max_bytes, "params": params or {}}
        if where:
            return await pool.ask(
                {"do": "ask", "stores": ["tiny"], "question": "heads/entropy", "where": text, **common}
            )
        return await pool.ask({"do": "sql", "store": "tiny", "sql": text, **common}, is_sql=True)

    try:
        yield ask
    finally:
        await pool.close()


async def told(ask: Ask, one: Hostile, store: Path, form: str) -> tuple[str, str]:
    """How a statement ended, and all that was said about it."""
    try:
        head, body = await ask(one.at(store), form, where=one.kind == "where")
    except Problem as problem:
        return problem.kind, json.dumps(problem.body())
    assert len(body) <= SMALL.max_bytes
    assert head["rows"] <= SMALL.max_rows
    return "answered", json.dumps(head) + body.decode(errors="replace")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def stand_against(statements: list[Hostile], store: Path, folder: Path) -> None:
    """Run each, then an honest one; no file may come, go or change, and nothing may be told that is not published."""
    before = contents(store)

    async def run() -> list[str]:
        failed = []
        async with asking(store, SMALL) as ask:
            (_, honestly) = await ask("select count(*) n, max(form) form from words")
            for number, one in enumerate(statements):
                kind, said = await told(ask, one, store, FORMS[number % 3])
                if one.must == "refused" and kind != "refused":
                    failed.append(f"{one}: {kind}")
                if (kind not in KINDS and kind != "answered") or kind in ("internal", "damaged", "busy"):
                    failed.append(f"{one}: {kind}")
                for leaked in (str(store), str(folder), SECRET, "Traceback (most", "site-packages", "root:x:0"):
                    if leaked in said and "Traceback" not in one.text:
                        failed.append(f"{one}: {leaked} was told")
                try:
                    _, again = await ask("select count(*) n, max(form) form from words")
                    if json.loads(again)["rows"] != json.loads(honestly)["rows"]:
                        failed.append(f"{one}: the next answer was another")
                except Problem as problem:
                    failed.append(f"{one}: the next statement met {problem.kind}")
        return failed

    assert asyncio.run(run()) == []
    assert contents(store) == before
    assert contents(folder) == {}


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which the workers run, under a server whose environment holds a secret."""
    place = tmp_path / "outside"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("ATTNSTORE_SECRET", SECRET)
    return place


SAMPLE = (
    "writes: COPY in a CTE",
    "files: text of a file of the system",
    "leaks: the user, short",
    "where: a comment that eats the bracket",
    "parser: brackets that stay open",
    "parser: half of a surrogate",
    "rows: a million million rows",
    "rows: times that Python does not know",
    "memory: a large list that is sorted",
    "memory: variants, nested",
    "time: a cross join with arithmetic",
    "time: a distance of long strings",
)


def test_workers_stand_against_a_few_of_each_kind(tiny_store: Path, outside: Path) -> None:
    chosen = [one for one in hostile() if str(one) in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    stand_against(chosen, tiny_store, outside)


@pytest.mark.parametrize("kind", sorted({one.kind for one in hostile()}))
def test_workers_stand_against_every_statement(tiny_store: Path, outside: Path, kind: str) -> None:
    stand_against([one for one in hostile() if one.kind == kind], tiny_store, outside)


def rounded(value: Any) -> Any:
    """A value with numbers to six digits, since threads add up in any order."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


VARIES = ("a sample of rows", "quantiles")
"""Honest statements that draw at random: of these the number of rows counts."""


def test_honest_statements_give_the_rows_that_a_reader_without_walls_gets(tiny_store: Path) -> None:
    limits = Limits(time_limit=20.0, workers=1, threads=1)

    async def run() -> dict[str, pa.Table | str]:
        found: dict[str, pa.Table | str] = {}
        async with asking(tiny_store, limits) as ask:
            for what, text in honest().items():
                try:
                    for form in FORMS:
                        head, body = await ask(text, form, parameters(text))
                        assert body
                        assert not head["truncated"]
                    found[what] = pa.ipc.open_stream(body).read_all()
                except Problem as problem:
                    found[what] = f"{problem.kind}: {problem.found}"
        return found

    answers = asyncio.run(run())
    wrong = {}
    with attnstore.open(tiny_store) as store:
        for what, text in honest().items():
            answer, plain = answers[what], store.sql(text, **parameters(text)).to_arrow()
            if isinstance(answer, str):
                wrong[what] = answer
            elif answer.schema.names != plain.schema.names or len(answer) != len(plain):
                wrong[what] = f"{answer.schema.names}, {len(answer)} rows"
            elif what not in VARIES:
                rows = [sorted(repr(rounded(row)) for row in table.to_pylist()) for table in (answer, plain)]
                if rows[0] != rows[1]:
                    wrong[what] = f"{rows[0][:3]} and not {rows[1][:3]}"
    assert wrong == {}


def test_a_cut_answer_is_the_beginning_of_the_whole_one(tiny_store: Path) -> None:
    text = "select example, word, form from words order by length(form) desc, form, example, word"

    async def run(rows: int, form: str) -> tuple[dict[str, Any], bytes]:
        async with asking(tiny_store, Limits(max_rows=rows, workers=1, threads=2, time_limit=20.0)) as ask:
            return await ask(text, form)  # type: ignore[no-any-return]

    head, whole = asyncio.run(run(10_000, "json"))
    assert not head["truncated"]
    cut_head, cut = asyncio.run(run(7, "json"))
    assert cut_head["truncated"]
    assert cut_head["rows"] == 7
    assert json.loads(cut)["rows"] == json.loads(whole)["rows"][:7]
    assert json.loads(cut)["truncated"] is True


def test_nothing_that_a_statement_leaves_is_seen_by_the_next(tiny_store: Path) -> None:
    async def run() -> list[list[Any]]:
        found = []
        async with asking(tiny_store, Limits(workers=1, threads=1, time_limit=20.0)) as ask:
            narrowed = (
                "select count(*) from attention join (select example from examples where example = 0) using (example)"
            )
            for text in (narrowed, "select count(*) from attention", narrowed, "select count(*) from words"):
                found.append(json.loads((await ask(text))[1])["rows"])
            for name in ("computed before 1", "attention 1 sized", "attention 1"):
                with pytest.raises(Problem, match="refused"):
                    await ask(f'from "{name}"')
        return found

    found = asyncio.run(run())
    with attnstore.open(tiny_store) as store:
        every = store.sql("select count(*) n from attention").to_arrow().to_pylist()[0]["n"]
    assert found[0] == found[2] != found[1] == [[every]]


def test_the_folder_of_the_tests_is_not_told_by_mistake(tiny_store: Path) -> None:
    """The check for paths would find one: the store's folder is absolute and not the root."""
    assert tiny_store.is_absolute()
    assert len(str(tiny_store)) > 5
    assert str(tiny_store) != os.sep
