"""This file is the page of two stores side by side: what they are, and what a compare/… question says of both."""

from dataclasses import dataclass, replace
from typing import Any

import markupsafe
import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from attnstore.catalogue.catalogue import questions
from attnstore.catalogue.paint import Picture
from attnstore.errors import AttnStoreError
from attnstore.serve.api import service_of
from attnstore.serve.pages.asked import Asked, ask, those_soon
from attnstore.serve.pages.grid import Address, Grid, paint
from attnstore.serve.pages.painted import grids_of
from attnstore.serve.pages.render import cut, drawn, link, render
from attnstore.serve.pages.state import address
from attnstore.serve.published import Published
from attnstore.show.colour import scale
from attnstore.show.question import MOST_PANELS, drawing
from attnstore.show.svg import svg
from attnstore.show.terminal import is_number
from attnstore.store.figures.figure import panels
from attnstore.store.figures.panels import Heat
from attnstore.store.result import Result

router = APIRouter()

FIRST = "compare/summary"
HEADS = "compare/heads"
ROWS = 200


def compared() -> dict[str, str]:
    """Every question about two stores, with its first line."""
    return {name: one.help.splitlines()[0] for name, one in questions().items() if one.compares}


@router.get("/compare")
async def compare(
    request: Request, a: str = "", b: str = "", question: str = FIRST, metric: str = "", level: str = ""
) -> Response:
    """Two stores side by side. `metric` and `level` are parameters of those questions that have them."""
    service = service_of(request)
    names = list(service.stores)
    first = service.store(a or None)
    others = [name for name in names if name != first.name]
    second = service.store(b) if b else service.store(others[0]) if others else None
    known = compared()
    about: dict[str, Any] = {"names": names, "a": first, "b": second, "question": question, "known": known}
    if second is None:
        return render(request, "compare.html", **about, answer=None, problem=None, again=None, pairs=None)
    asked = service.question(question)
    given = {name: value for name, value in (("metric", metric), ("level", level)) if value and name in asked.params}
    if question == HEADS:
        given.setdefault("metric", "entropy")  # one at a time, so that the three grids are of one number
    both = [first, second]
    state = {"a": first.name, "b": second.name, "question": question, **given}
    wanted = {"answer": ask(service, both, question, given), "pairs": ask(service, both, "compare/pairs", {})}
    found = await those_soon(wanted)
    answer, pairs = found["answer"], found["pairs"]
    about |= {
        "again": address("/compare", state) if answer is None or pairs is None else None,
        "problem": answer.problem if answer is not None else None,
        "answer": answer if answer is not None and answer.result is not None else None,
        "pairs": Pairs.of(pairs) if pairs is not None else None,
        "choices": [(name, asked.params[name].choices) for name in ("metric", "level") if name in asked.params],
        "given": given,
        "address": lambda **changes: address("/compare", state, **changes),
        "swapped": address("/compare", {**state, "a": second.name, "b": first.name}),
        "full": link("/stores", first.name, "questions", question, other=second.name, **given),
        "downloads": [
            (form, link("/v1/questions", question, store=first.name, other=second.name, **given, format=form))
            for form in ("csv", "json", "arrow")
        ],
    }
    if answer is not None and answer.result is not None:
        about |= await run_in_threadpool(_shown, answer.result, first, second)
    # Stores without common examples are nothing wrong with the address: the page says so.
    is_apart = about["pairs"] is not None and not about["pairs"].shared
    status = 200 if answer is None or is_apart else answer.status
    return render(request, "compare.html", status, **about)


@dataclass(frozen=True, slots=True)
class Pairs:
    """How many examples two stores have in common, and what each has of its own."""

    shared: int
    only_a: int
    only_b: int

    @classmethod
    def of(cls, asked: Asked) -> "Pairs | None":
        """From compare/pairs; None where there is no answer."""
        if asked.result is None:
            return None
        counts = dict.fromkeys(("paired", "only_a", "only_b"), 0)
        for row in asked.rows:
            counts[row["item"]] += int(row["n"])
        return cls(counts["paired"], counts["only_a"], counts["only_b"])


def _shown(result: Result, a: Published, b: Published) -> dict[str, Any]:
    """The answer as grids or pictures, and as a table."""
    grids, pictures = _pictures(result, a, b)
    table = result.to_arrow()
    shown = table.slice(0, ROWS)
    columns = [[cut(value) for value in column.to_pylist()] for column in shown.columns]
    return {
        "grids": grids,
        "pictures": pictures,
        "columns": table.column_names,
        "is_number": [is_number(column.type) for column in table.columns],
        "rows": list(zip(*columns, strict=True)),
        "n_rows": table.num_rows,
    }


def _pictures(result: Result, a: Published, b: Published) -> tuple[list[Grid], list[markupsafe.Markup]]:
    """Grids of a, of b and of the difference where the answer is about heads; else what the question paints."""
    names = set(result.to_arrow().column_names)
    if not len(result) or result.question is None:
        return [], []
    try:
        if {"layer", "head", "value_a", "value_b", "difference"} <= names:
            return _sides(result, a, b), []
        if {"layer", "head"} <= names:
            pictures = [Picture("grid", _columns(name), name) for name in ("cosine", "js", "tv") if name in names]
            return [grid for picture in pictures for grid in grids_of(result, picture, _heads(a))], []
        found = [panel for picture in result.question.pictures[:2] for panel in panels(result, picture)]
        return [], [drawn(svg(drawing(panel))) for panel in found[:MOST_PANELS]]
    except AttnStoreError:
        return [], []  # the table says all of it


def _sides(result: Result, a: Published, b: Published) -> list[Grid]:
    """One grid for each store, with one scale for both, and one of the difference."""
    found: dict[str, Heat] = {}
    for column in ("value_a", "value_b", "difference"):
        panel = panels(result, Picture("grid", _columns(column), column))[0]
        if not isinstance(panel, Heat):
            return []
        found[column] = panel
    both = scale(np.concatenate([found[column].values.ravel() for column in ("value_a", "value_b")]))
    sides = [
        paint(replace(found[column], ends=(both.low, both.high)), f"{name}, {store.name}", _heads(store), small=True)
        for column, name, store in (("value_a", "a", a), ("value_b", "b", b))
    ]
    return [*sides, paint(found["difference"], "difference, b - a", _heads(b), small=True, diverging=True)]


def _columns(value: str) -> dict[str, str]:
    return {"value": value, "layer": "layer", "head": "head"}


def _heads(store: Published) -> Address:
    return lambda layer, head: link("/stores", store.name, "heads", layer, head)
