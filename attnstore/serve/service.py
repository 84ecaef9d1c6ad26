"""This file is what the API and the pages ask: questions, SQL and maps of the published stores, by the workers."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from attnstore.catalogue.catalogue import bind, questions
from attnstore.catalogue.question import Question
from attnstore.errors import AttnStoreError
from attnstore.format.commit import tools
from attnstore.serve.answers import Answer, Answers, key_of
from attnstore.serve.delivery import Held
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics
from attnstore.serve.pool import Pool
from attnstore.serve.problems import Problem, problem
from attnstore.serve.published import Published
from attnstore.store.attention_map import AttentionMap


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a worker, and the key that names its answer before it is there."""

    request: dict[str, Any]
    key: str


@dataclass(frozen=True, slots=True)
class Service:
    """The published stores, and the workers that answer about them."""

    stores: Mapping[str, Published]
    limits: Limits
    metrics: Metrics
    pool: Pool
    answers: Answers
    held: Held

    def store(self, name: str | None) -> Published:
        """A store by name; the first for None. Problem `not-found` for another."""
        if name is None:
            return next(iter(self.stores.values()))
        if name not in self.stores:
            raise Problem("not-found", f"no store {name!r}", f"one of {', '.join(self.stores)}")
        return self.stores[name]

    def question(self, name: str) -> Question:
        """A question that ships; Problem `not-found` for another."""
        try:
            return questions()[name]
        except AttnStoreError as error:
            raise problem(error) from None

    def asked(
        self,
        stores: list[Published],
        question: str,
        params: Mapping[str, object],
        *,
        where: str | None = None,
        form: str = "json",
        max_rows: int | None = None,
    ) -> "Asked":
        """What is asked, and the key of its answer; Problem for parameters that the question does not take."""
        wanted = self.question(question)
        if wanted.compares != (len(stores) == 2):
            named = "two stores: store= and other=" if wanted.compares else "one store"
            raise Problem("bad-parameter", f"{question} is asked of {named}")
        try:
            values = bind(wanted, params)
        except AttnStoreError as error:
            raise problem(error) from None
        limits = self._limits(form, max_rows)
        request = {
            "do": "ask",
            "stores": [store.name for store in stores],
            "question": question,
            "params": values,
            "where": where,
            "form": form,
            **limits,
        }
        hashes = [store.content_hash for store in stores]
        names = [store.name for store in stores]
        key = key_of(tools()["attnstore"], hashes, names, question, wanted.sql, values, where, form, limits)
        return Asked(request, key)

    async def ask(
        self,
        stores: list[Published],
        question: str,
        params: Mapping[str, object],
        *,
        where: str | None = None,
        form: str = "json",
        max_rows: int | None = None,
        fresh: bool = False,
    ) -> Answer:
        """The answer to a question; `fresh` does not take one that is held."""
        asked = self.asked(stores, question, params, where=where, form=form, max_rows=max_rows)
        return await self.answer(asked, fresh=fresh)

    async def answer(self, asked: "Asked", *, fresh: bool = False) -> Answer:
        """The answer to what `asked` gave."""
        if fresh:
            return Answer(*await self._ask(asked.request), asked.key)
        return await self.answers.get(asked.key, lambda: self._ask(asked.request))

    async def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """What a worker gives; a condition is SQL of a stranger, which first has to run alone in a statement's time."""
        if request["where"] is None:
            return await self.pool.ask(request)
        await self.pool.ask({**request, "do": "condition"}, is_sql=True)
        return await self.pool.ask(request, is_sql=True, seconds=self.limits.question_time_limit)

    async def sql(
        self,
        store: Published,
        text: str,
        params: Mapping[str, object],
        *,
        form: str = "json",
        max_rows: int | None = None,
    ) -> Answer:
        """The answer to one statement."""
        limits = self._limits(form, max_rows)
        request = {"do": "sql", "store": store.name, "sql": text, "params": dict(params), "form": form, **limits}
        key = key_of([store.content_hash], text, params, form, limits)
        return Answer(*await self.pool.ask(request, is_sql=True), key)

    async def attention(
        self, store: Published, example: int | str, layer: int, head: int, **options: object
    ) -> tuple[AttentionMap, str]:
        """The map of one head, and the content hash of its store."""
        request = {
            "do": "map",
            "store": store.name,
            "example": example,
            "layer": layer,
            "head": head,
            "options": options,
        }
        key = key_of([store.content_hash], "map", example, layer, head, options)
        answer = await self.answers.get(key, lambda: self.pool.ask(request))
        about = answer.head
        found = AttentionMap(
            np.load(io.BytesIO(answer.body), allow_pickle=False),
            tuple(about["dims"]),
            (about["layer"],),
            () if about["head"] is None else (about["head"],),
            tuple(about["queries"]),
            tuple(about["keys"]),
            about["kind"],
            about["level"],
            about["example"],
            about["name"],
            about["weights_are"],
        )
        return found, about["snapshot"]

    async def tables(self, store: Published) -> dict[str, dict[str, str]]:
        """The tables that SQL can name, with columns and types."""
        request = {"do": "tables", "store": store.name}
        answer = await self.answers.get(key_of(store.content_hash, "tables"), lambda: self.pool.ask(request))
        found: dict[str, dict[str, str]] = answer.head["tables"]
        return found

    def _limits(self, form: str, max_rows: int | None) -> dict[str, int]:
        limits = self.limits
        most = limits.max_arrow_rows if form == "arrow" else limits.max_rows
        if max_rows is not None and max_rows < 1:
            raise Problem("bad-parameter", f"max_rows={max_rows}", f"1 to {most}")
        most_bytes = limits.max_arrow_bytes if form == "arrow" else limits.max_bytes
        return {"max_rows": min(max_rows or most, most), "max_bytes": most_bytes}


def table_of(answer: Answer) -> pa.Table:
    """The rows of an answer in the form Arrow."""
    return pa.ipc.open_stream(answer.body).read_all()
