"""This file is the pages of questions: all of them by group, and one with its form, pictures, table and citation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import markupsafe
from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from attnstore.catalogue.catalogue import questions
from attnstore.catalogue.declared import REQUIRED
from attnstore.catalogue.question import Param
from attnstore.catalogue.values import written
from attnstore.errors import AttnStoreError
from attnstore.serve.api import service_of
from attnstore.serve.pages.asked import Asked, absent_of_questions, ask
from attnstore.serve.pages.render import cut, drawn, link, render
from attnstore.serve.problems import problem
from attnstore.serve.published import Published
from attnstore.show.question import MOST_PANELS, drawing
from attnstore.show.svg import svg
from attnstore.show.terminal import is_number
from attnstore.store.figures.figure import panels
from attnstore.store.result import Result

router = APIRouter()

PAGE = 100
"""Rows of a table on one page."""

MOST_DRAWN = 2_000_000
"""Characters of all pictures together; what is more takes long to fetch and to draw."""

OWN = ("page", "other", "where")
"""What the address of such a page says beside the question's own parameters."""

GROUPS = {
    "ablation": "What the model loses without heads",
    "audit": "What is in the store, and how exact it is",
    "classes": "Heads and the classes of a task",
    "clusters": "Heads that are alike",
    "compare": "Two stores side by side",
    "coref": "Mentions of the same entity",
    "examples": "One example through all layers",
    "features": "Features of heads",
    "frames": "Frames",
    "gradients": "Gradients",
    "heads": "Numbers of each head",
    "induction": "Induction and repeated tokens",
    "norms": "Lengths of what heads move",
    "pairs": "Pairs of texts, and words that recur",
    "patterns": "Patterns of maps",
    "probe": "Features for probes",
    "relations": "Syntax",
    "trojan": "Triggers",
    "weights": "Weights of the model",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter as a form asks for it; `given` is what stands in the form, empty for the default."""

    name: str
    type: str
    options: Sequence[str]
    default: str
    is_required: bool
    least: float | None
    given: str


@router.get("/stores/{store}/questions")
async def questions_page(request: Request, store: str) -> Response:
    """Every question by group, with what the store lacks for it."""
    service = service_of(request)
    found = service.store(store)
    lacking = await absent_of_questions(service, found)
    groups: dict[str, list[tuple[str, str, list[str]]]] = {}
    for name, question in questions().items():
        missing = [one.replace("_", " ") for one in lacking.get(name, [])]
        if question.compares and len(service.stores) < 2:
            missing = ["a second store"]
        groups.setdefault(name.partition("/")[0], []).append((name, question.help.splitlines()[0], missing))
    return render(request, "questions.html", store=found, groups=groups, titles=GROUPS)


@router.get("/stores/{store}/questions/{name:path}")
async def question_page(request: Request, store: str, name: str, page: int = 1) -> Response:
    """The form of a question; with all that it requires, its pictures, its rows, and how to cite it."""
    service = service_of(request)
    found, question = service.store(store), service.question(name)
    # An empty field of a form is a parameter that was not given.
    given = {key: value for key, value in request.query_params.items() if value and key not in OWN}
    where = request.query_params.get("where") or None
    other = request.query_params.get("other") or None
    fields = [_field(param, given.get(param.name, ""), found) for param in question.params.values()]
    wanted = [field.name for field in fields if field.is_required and not field.given]
    if question.compares and other is None:
        wanted.append("other")
    others = [one for one in service.stores.values() if one is not found]
    about: dict[str, Any] = {
        "store": found,
        "question": question,
        "help": question.help.splitlines(),
        "fields": fields,
        "others": others,
        "other": other,
        "where": where,
        "wanted": wanted,
    }
    if wanted:
        return render(request, "question.html", **about, problem=None, answer=None)
    asked = [found, service.store(other)] if question.compares and other else [found]
    answer = await ask(service, asked, name, given, where)
    if answer.result is None:
        return render(request, "question.html", answer.status, **about, problem=answer.problem, answer=None)
    address = {"other": other if question.compares else None, "where": where, **given}
    own = link("/stores", found.name, "questions", name, **address)
    api = link("/v1/questions", name, store=found.name, **address)
    shown = await run_in_threadpool(_shown, answer.result, max(page, 1))
    return render(
        request,
        "question.html",
        **about,
        problem=None,
        answer=answer,
        **shown,
        columns=[(column.name, column.meaning) for column in question.returns],
        downloads=[(form, f"{api}&format={form}") for form in ("csv", "json", "arrow")],
        pages=_pages(own, len(answer.result), max(page, 1)),
        cited=_cited(answer, found, own),
    )


def _field(param: Param, given: str, store: Published) -> Field:
    """A parameter as a field."""
    options: Sequence[str] = ("true", "false") if param.type == "boolean" else param.choices
    if param.name == "kind" and not options:
        options = store.store.kinds
    is_required = param.default is REQUIRED
    default = "" if is_required else written(param.default)
    return Field(param.name, str(param.type), options, default, is_required, param.least, given)


def _shown(result: Result, page: int) -> dict[str, Any]:
    """The pictures of an answer and one page of its rows, as texts."""
    table = result.to_arrow()
    rows = table.slice((page - 1) * PAGE, PAGE)
    columns = [[cut(value) for value in column.to_pylist()] for column in rows.columns]
    pictures, left_out = _pictures(result)
    return {
        "names": table.column_names,
        "is_number": [is_number(column.type) for column in table.columns],
        "rows": list(zip(*columns, strict=True)),
        "first": (page - 1) * PAGE + 1,
        "pictures": pictures,
        "left_out": left_out,
    }


def _pictures(result: Result) -> tuple[list[tuple[str, list[markupsafe.Markup]]], list[str]]:
    """Every picture of the question by its name, and why some are not there."""
    drawings: list[tuple[str, list[markupsafe.Markup]]] = []
    left_out: list[str] = []
    size = 0
    if not len(result):
        return drawings, left_out
    for picture in result.question.pictures if result.question else ():
        try:
            found = panels(result, picture)
            made = [svg(drawing(panel)) for panel in found[:MOST_PANELS]]
        except AttnStoreError as error:
            left_out.append(f"{picture.name}: {problem(error).body()['detail']}")
            continue
        size += sum(map(len, made))
        if size > MOST_DRAWN:
            left_out.append(f"{picture.name}: too large for a page; narrow the question")
            break
        if len(found) > MOST_PANELS:
            left_out.append(f"{picture.name}: {len(found) - MOST_PANELS} of its {len(found)} panels are not drawn")
        drawings.append((picture.name, [drawn(one) for one in made]))
    return drawings, left_out


def _pages(address: str, n_rows: int, page: int) -> dict[str, Any]:
    """Where the table goes on."""
    last = max(1, -(-n_rows // PAGE))
    mark = "&" if "?" in address else "?"
    return {
        "number": page,
        "last": last,
        "before": f"{address}{mark}page={page - 1}" if 1 < page <= last + 1 else None,
        "after": f"{address}{mark}page={page + 1}" if page < last else None,
    }


def _cited(answer: Asked, store: Published, address: str) -> dict[str, str]:
    """How the answer is cited: one line, and everything as JSON."""
    assert answer.result is not None
    facts = answer.result.provenance
    params = ", ".join(f"{name}={written(value)}" for name, value in facts.params.items() if value is not None)
    line = (
        f"attnstore, question {facts.question} ({params or 'no parameters'}) of “{facts.title}”, {facts.model}, "
        f"snapshot {facts.snapshot}, content {facts.content_hash}. After {facts.source}."
    )
    return {
        "line": line,
        "json": json.dumps(answer.result.origin(), ensure_ascii=False, indent=2, default=str),
        "address": address,
        "licence": str(store.store.info.corpus.get("licence") or ""),
    }
