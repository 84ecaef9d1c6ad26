"""This file is the list of examples and the sentence view: one head's map among the words of one example."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from attnstore.serve.api import service_of
from attnstore.serve.pages import sentence
from attnstore.serve.pages.render import drawn, render
from attnstore.serve.pages.state import address, attempt
from attnstore.serve.pages.units import Place, arcs, focus_of, largest, running, units_of
from attnstore.serve.problems import Problem
from attnstore.serve.published import Published
from attnstore.serve.service import Service, table_of
from attnstore.store.attention_map import AttentionMap

router = APIRouter()

PAGE = 50
LONGEST = 256
"""Units on a side above which a map is shown as a matrix only."""

TEXT = "concat_ws(' | ', e.text, e.second, e.target)"
TOKENS = "select example, string_agg(text, ' ' order by token) as tokens from tokens where side = 'source'"
FOUND = f"contains(lower(concat_ws(' ', e.name, {TEXT}, t.tokens)), lower($text))"
LISTED = f"""select e.example, e.name, {TEXT} as text, t.tokens, e.label, e.n_tokens
from examples as e left join ({TOKENS} group by example) as t on t.example = e.example
where $text = '' or {FOUND} order by e.example limit $most offset $skip"""
COUNTED = f"""select count(*) as n
from examples as e left join ({TOKENS} group by example) as t on t.example = e.example
where $text = '' or {FOUND}"""
ONE = """select e.*, (select max(example) from examples where example < e.example) as previous,
(select min(example) from examples where example > e.example) as following
from examples as e where example = try_cast($which as integer) or name = $which
order by e.example = try_cast($which as integer) desc limit 1"""
ITS_TOKENS = "select side, token, text, word, special from tokens where example = $example order by side, token"
ITS_WORDS = """select side, word, form, governor, deprel from words where example = $example order by side, word"""


async def rows(service: Service, store: Published, statement: str, /, **params: object) -> list[dict[str, Any]]:
    """The rows of one of our own statements; `params` are the values of its $names."""
    found: list[dict[str, Any]] = table_of(await service.sql(store, statement, params, form="arrow")).to_pylist()
    return found


@router.get("/stores/{store}/examples")
async def examples(
    request: Request,
    store: str,
    text: Annotated[str, Query(max_length=500)] = "",
    page: Annotated[int, Query(ge=1, le=10_000_000)] = 1,
) -> Response:
    """The examples, 50 a page: all, or those whose name, text or tokens hold what is searched for."""
    service = service_of(request)
    own = service.store(store)
    text = text.strip()
    skip = (page - 1) * PAGE
    found, counted = await asyncio.gather(
        rows(service, own, LISTED, text=text, most=PAGE, skip=skip), rows(service, own, COUNTED, text=text)
    )
    count = int(counted[0]["n"])
    path = f"/stores/{own.name}/examples"
    return render(
        request,
        "examples.html",
        store=own,
        path=path,
        text=text,
        found=found,
        count=count,
        first=skip + 1,
        previous=address(path, {"text": text, "page": page - 1}) if page > 1 else None,
        following=address(path, {"text": text, "page": page + 1}) if skip + PAGE < count else None,
        has_labels=any(row["label"] is not None for row in found),
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """What of an example is shown: the state of the page, which its address says."""

    kind: str
    layer: int
    head: int
    level: str
    view: str
    specials: bool
    renormalise: bool

    def said(self, first: "Shown") -> dict[str, object]:
        """What differs from the first state, and the layer and head always."""
        mine, theirs = (
            {name: getattr(one, name) for name in ("kind", "level", "view", "specials", "renormalise")}
            for one in (self, first)
        )
        changed = {name: value for name, value in mine.items() if value != theirs[name]}
        return {"kind": changed.pop("kind", None), "layer": self.layer, "head": self.head, **changed}


@router.get("/stores/{store}/examples/{example}")
async def example(
    request: Request,
    store: str,
    example: str,
    kind: str | None = None,
    layer: Annotated[int | None, Query(ge=0)] = None,
    head: Annotated[int | None, Query(ge=0)] = None,
    level: Literal["token", "word"] = "token",
    view: Literal["lines", "matrix"] = "lines",
    specials: bool = True,
    renormalise: bool = False,
    word: Annotated[str, Query(max_length=12, pattern=r"^(t?\d+)?$")] = "",
    side: Literal["query", "key"] = "query",
) -> Response:
    """One example with the map of one head. `word` is the word in focus, of the axis `side` where a map has two texts:
    the number of a word or token as `level` says, or with t before it the number of a token."""
    service = service_of(request)
    own = service.store(store)
    info = own.store.info
    if kind is not None and kind not in info.kinds:
        raise Problem("not-found", f"no kind {kind!r}", ", ".join(info.kinds))
    which = kind or next(iter(info.kinds))
    shape, kept = info.kinds[which], info.kept
    layers, heads = kept.layers or range(shape.layers), kept.heads or range(shape.heads)
    for name, number, most in (("layer", layer, shape.layers), ("head", head, shape.heads)):
        if number is not None and number >= most:
            raise Problem("not-found", f"{name} {number}", f"a {name} from 0 to {most - 1}")
    shown = Shown(
        which,
        next(iter(layers)) if layer is None else layer,
        next(iter(heads)) if head is None else head,
        level,
        view,
        specials,
        renormalise,
    )
    one = await rows(service, own, ONE, which=example)
    if not one:
        raise Problem("not-found", f"no example {example!r}", "a number or a name of the list of examples")
    about = one[0]
    number = int(about["example"])
    asked = service.attention(
        own,
        number,
        shown.layer,
        shown.head,
        kind=which,
        level=level,
        specials=specials,
        renormalise=renormalise,
    )
    tokens, words, (answer, problem) = await asyncio.gather(
        rows(service, own, ITS_TOKENS, example=number), rows(service, own, ITS_WORDS, example=number), attempt(asked)
    )
    path = f"/stores/{own.name}/examples/{number}"
    state = shown.said(Shown(next(iter(info.kinds)), 0, 0, "token", "lines", True, False))
    place = Place(shape.queries, shape.keys, level, specials, path, state)
    held = {
        **state,
        "word": place.kept_focus(tokens, word, side),
        "side": side if side == "key" and not place.is_self else None,
    }
    values = {
        "about": about,
        "shown": shown,
        "shape": shape,
        "layers": list(range(shape.layers)),
        "heads": list(range(shape.heads)),
        "kept_layers": set(layers),
        "kept_heads": set(heads),
        "kept": kept,
        "kinds": list(info.kinds),
        "has_words": bool(words),
        "path": path,
        "problem": problem,
        "to": lambda **changes: address(path, held, **changes),
        "other": lambda example: address(f"/stores/{own.name}/examples/{example}", state),
        "state": held,
        "data": lambda form: address(
            f"/v1/attention/{number}/{shown.layer}/{shown.head}",
            {"store": own.name, "kind": which, "level": level, "specials": specials, "renormalise": renormalise},
            format=form,
        ),
        "is_long": False,
        "picture": None,
        "readable": running(tokens, words, place),
    }
    if answer is not None:
        values |= await run_in_threadpool(_seen, answer[0], tokens, words, place, shown, word, side)
    return render(request, "example.html", store=own, **values)


def _seen(
    found: AttentionMap,
    tokens: list[dict[str, Any]],
    words: list[dict[str, Any]],
    place: Place,
    shown: Shown,
    word: str,
    side: str,
) -> dict[str, object]:
    """What of the page needs the map."""
    weights = found.to_numpy().astype(np.float64)
    queries = units_of(tokens, found.queries, place, "query")
    keys = units_of(tokens, found.keys, place, "key")
    focus = focus_of(queries, keys, tokens, place, word, side)
    is_long = max(weights.shape) > LONGEST
    draw = sentence.matrix if is_long or shown.view == "matrix" else sentence.lines
    focused = queries[focus.row] if focus.row is not None else None
    focused = keys[focus.column] if focused is None and focus.column is not None else focused
    n_drawn = int((np.nan_to_num(weights) >= sentence.FAINT).sum())
    return {
        "is_long": is_long,
        "picture": drawn(draw(weights, queries, keys, focus)),
        "focus": focus,
        "focused": focused,
        "outgoing": largest(weights, queries, keys, row=focus.row) if focus.row is not None else [],
        "incoming": largest(weights, queries, keys, column=focus.column) if focus.column is not None else [],
        "strongest": largest(weights, queries, keys),
        "arcs": arcs(weights, queries, keys, words, place, focus),
        "left_out": max(0, n_drawn - sentence.MOST_LINES),
        "readable": running(tokens, words, place, (weights, queries, keys, focus)),
    }
