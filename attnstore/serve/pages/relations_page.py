"""This file is the pages of relations: which head knows each best, and one relation with its sentences."""

import asyncio
from dataclasses import replace
from typing import Any

import pyarrow as pa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from attnstore.catalogue.paint import Picture
from attnstore.serve.api import service_of
from attnstore.serve.pages.asked import Asked, ask, kind_of, kind_params
from attnstore.serve.pages.dependencies import DIRECTIONS, plain
from attnstore.serve.pages.evidence import Sentence, sentences
from attnstore.serve.pages.grid import Grid
from attnstore.serve.pages.painted import grids_of
from attnstore.serve.pages.relation_rows import Row, rows_of
from attnstore.serve.pages.render import link, render
from attnstore.serve.problems import Problem
from attnstore.serve.published import Published
from attnstore.serve.service import Service
from attnstore.store.result import Result

router = APIRouter()
SHOWN, ALL = 6, 100
"""Sentences of each list, and of one that is asked for alone."""

ACCURACY = Picture("grid", {"value": "accuracy", "layer": "layer", "head": "head"}, "grid")


@router.get("/stores/{store}/relations")
async def relations(request: Request, store: str, kind: str | None = None) -> Response:
    """For every relation the head that marks it best, and what a fixed offset reaches."""
    service = service_of(request)
    found = service.store(store)
    kind = kind_of(found, kind)
    best = await ask(service, [found], "relations/best", kind_params(kind))
    rows = rows_of(best.rows)
    return render(
        request,
        "relations.html",
        best.status,
        store=found,
        kind=kind,
        problem=best.problem,
        rows=[row for row in rows if row.relation != "all"],
        overall=next((row for row in rows if row.relation == "all"), None),
    )


@router.get("/stores/{store}/relations/{relation:path}")
async def relation_page(
    request: Request,
    store: str,
    relation: str,
    layer: int | None = None,
    head: int | None = None,
    direction: str | None = None,
    correct: bool | None = None,
    kind: str | None = None,
) -> Response:
    """One relation: its best head, all heads, and sentences in which a head is right and wrong."""
    service = service_of(request)
    found = service.store(store)
    kind = kind_of(found, kind)
    if direction and direction not in DIRECTIONS:
        raise Problem("bad-parameter", f"direction={direction!r}", f"one of {', '.join(DIRECTIONS)}")
    answer = await ask(service, [found], "relations/best", {"relation": relation, **kind_params(kind)})
    best = next(iter(rows_of(answer.rows)), None)
    about: dict[str, Any] = {"store": found, "relation": relation, "plain": plain(relation), "kind": kind, "best": best}
    if best is None:
        status = answer.status if answer.problem else 404
        return render(request, "relation.html", status, **about, problem=answer.problem)
    way = direction or best.direction
    scores = await ask(service, [found], "relations/accuracy", {"relation": relation, **kind_params(kind)})
    rows = [row for row in scores.rows if row["direction"] == way and row["relation"] == relation]
    chosen = _chosen(rows, best, way, layer, head)
    shown = (True, False) if correct is None else (correct,)
    limit = SHOWN if correct is None else ALL
    lists = await asyncio.gather(*(_evidence(service, found, chosen, one, kind, limit) for one in shown))
    return render(
        request,
        "relation.html",
        **about,
        problem=None,
        chosen=chosen,
        way=way,
        directions=DIRECTIONS,
        grids=await run_in_threadpool(_grids, found, scores, rows, kind, chosen),
        lists=dict(zip(shown, lists, strict=True)),
        correct=correct,
        limit=limit,
    )


def _chosen(rows: list[dict[str, Any]], best: Row, way: str, layer: int | None, head: int | None) -> Row:
    """The head that the page is about: that of the address, else the best one of the direction."""
    if layer is None or head is None:
        if way == best.direction:
            return best
        row = max(rows, key=lambda row: (row["accuracy"], -row["layer"], -row["head"]), default=None)
    else:
        row = next((row for row in rows if (row["layer"], row["head"]) == (layer, head)), None)
    if row is None:
        raise Problem("not-found", f"layer {layer}, head {head}", "a head of this store")
    return replace(best, **{name: row[name] for name in ("n", "layer", "head", "direction", "accuracy")})


def _grids(store: Published, scores: Asked, rows: list[dict[str, Any]], kind: str | None, chosen: Row) -> list[Grid]:
    """The accuracies of one direction, the chosen head with a ring; a cell leads to this page for its head."""
    if scores.result is None:
        return []

    def address(layer: int, head: int) -> str:
        given = {"layer": layer, "head": head, "direction": chosen.direction, "kind": kind}
        return link("/stores", store.name, "relations", chosen.relation, **given)

    table = pa.Table.from_pylist(rows, scores.result.to_arrow().schema)
    result = Result(table, scores.result.provenance, scores.result.question)
    return grids_of(result, ACCURACY, address, (chosen.layer, chosen.head))


async def _evidence(
    service: Service, store: Published, row: Row, correct: bool, kind: str | None, limit: int
) -> list[Sentence]:
    """Sentences in which the head is right, or wrong."""
    place = {"relation": row.relation, "layer": row.layer, "head": row.head, "direction": row.direction}
    params = {**place, "correct": correct, "limit": limit, **kind_params(kind)}
    return sentences((await ask(service, [store], "relations/evidence", params)).rows)
