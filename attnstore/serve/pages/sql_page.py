"""This file is the page of SQL: a statement, the tables beside it, its rows, and links that repeat and fetch them."""

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from attnstore.serve.answers import Answer
from attnstore.serve.api import service_of
from attnstore.serve.pages.render import link, render
from attnstore.serve.pages.state import address, attempt
from attnstore.serve.published import Published

router = APIRouter()

PAGE = 100
FORMS = ("csv", "json", "arrow")
NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal")

COMMON = ("examples", "tokens", "words", "relations", "heads", "head_facts", "token_facts", "attention")

STARTS = (
    ("Examples, longest first", "select example, name, n_tokens, text\nfrom examples\norder by n_tokens desc", ""),
    (
        "Heads, those with the sharpest attention first",
        "select layer, head, sum(entropy_sum) / sum(n_queries) as entropy_nats\n"
        "from head_facts\ngroup by layer, head\norder by entropy_nats",
        "head_facts",
    ),
    (
        "The commonest tokens",
        "select text, count(*) as n\nfrom tokens\nwhere special is null\ngroup by text\norder by n desc",
        "",
    ),
    (
        "The largest weights of one example, over all heads",
        "select layer, head, query, key, weight\nfrom attention\nwhere example = 0\norder by weight desc",
        "maps",
    ),
    (
        "Relations by how often they occur",
        "select deprel, count(*) as n\nfrom relations\ngroup by deprel\norder by n desc",
        "words",
    ),
    (
        "Words with their governors",
        "select d.example, d.form, d.deprel, g.form as governor\n"
        "from words as d\n"
        "join words as g on g.example = d.example and g.side = d.side and g.word = d.governor\n"
        "order by d.example, d.word",
        "words",
    ),
    ("The heads of the model", "select * from heads", ""),
    ("What was left out of the store, and why", "select * from skipped", ""),
)
"""Statements to begin with: what they ask, the statement, and what a store needs for them."""


@dataclass(frozen=True, slots=True)
class Table:
    """One page of an answer: names and types of the columns, cells as text with an address or none."""

    columns: list[dict[str, str]]
    is_number: list[bool]
    rows: list[list[tuple[Any, str | None]]]
    n_rows: int
    is_truncated: bool
    milliseconds: float


@router.get("/stores/{store}/sql")
async def sql_page(
    request: Request,
    store: str,
    sql: Annotated[str, Query(max_length=65536)] = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
) -> Response:
    """The statement with its answer, 100 rows a page, or with what is wrong with it."""
    service = service_of(request)
    own = service.store(store)
    tables = in_order(await service.tables(own))
    path = f"/stores/{own.name}/sql"
    text = sql.strip()
    table, problem = None, None
    if text:
        # As many rows as this page needs and one that tells whether there is a next.
        most = min(page * PAGE + 1, service.limits.max_rows)
        answer, problem = await attempt(service.sql(own, text, {}, max_rows=most))
        table = _table(answer, own, page) if answer is not None else None
    has_next = table is not None and table.n_rows > page * PAGE
    at_end = table is not None and table.is_truncated and not has_next
    return render(
        request,
        "sql.html",
        200 if problem is None else int(problem["status"]),
        store=own,
        path=path,
        sql=text,
        tables=tables,
        starts=[(title, statement, address(path, {"sql": statement})) for title, statement in starts(own)],
        table=table,
        problem=problem,
        first=(page - 1) * PAGE + 1,
        previous=address(path, {"sql": text, "page": page - 1}) if table is not None and page > 1 else None,
        following=address(path, {"sql": text, "page": page + 1}) if has_next else None,
        is_cut=at_end,
        max_rows=service.limits.max_rows,
        limits=service.limits,
        downloads=[(form, link("/v1/query", store=own.name, sql=text, format=form)) for form in FORMS] if text else [],
        share=str(request.base_url).rstrip("/") + address(path, {"sql": text}),
    )


def in_order(tables: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The tables, those that one begins with first."""
    first = [name for name in COMMON if name in tables]
    return {name: tables[name] for name in [*first, *(name for name in tables if name not in first)]}


def starts(store: Published) -> list[tuple[str, str]]:
    """Statements that this store can answer."""
    info = store.store.info
    has = {"maps"} if info.kept.maps != "none" else set()
    if any(unit.rows.get("words") for unit in store.store.contents.units):
        has.add("words")
    if any(unit.rows.get("head_facts") for unit in store.store.contents.units):
        has.add("head_facts")
    return [(title, statement) for title, statement, needed in STARTS if not needed or needed in has]


def _table(answer: Answer, store: Published, page: int) -> Table:
    """The rows of a page; examples and heads that it names are links."""
    body = json.loads(answer.body)
    columns = body["columns"]
    names = [column["name"] for column in columns]
    shown = body["rows"][(page - 1) * PAGE : page * PAGE]
    told = [dict(zip(names, row, strict=True)) for row in shown]
    rows = [
        [(value, _address(store, name, value, about)) for name, value in zip(names, row, strict=True)]
        for row, about in zip(shown, told, strict=True)
    ]
    is_number = [column["type"].startswith(NUMBERS) for column in columns]
    return Table(columns, is_number, rows, len(body["rows"]), body["truncated"], body["elapsed_ms"])


def _address(store: Published, name: str, value: Any, row: dict[str, Any]) -> str | None:
    """Where a value leads: an example to its sentence, a layer and head to their page."""
    layer, head = row.get("layer"), row.get("head")
    is_head = type(layer) is int and type(head) is int and layer >= 0 and head >= 0
    if name == "example" and type(value) is int and value >= 0:
        at = {"layer": layer, "head": head} if is_head else {}
        return link("/stores", store.name, "examples", value, **at)
    if name in ("layer", "head") and is_head:
        return link("/stores", store.name, "heads", layer, head)
    return None
