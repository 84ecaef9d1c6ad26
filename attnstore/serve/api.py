"""This file is the API: stores, questions, SQL and maps as JSON, CSV, Arrow or .npy."""

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from attnstore.catalogue.catalogue import questions
from attnstore.catalogue.question import REQUIRED, Question
from attnstore.format.commit import tools
from attnstore.serve import shapes
from attnstore.serve.answers import Answer
from attnstore.serve.delivery import Delivery, takes_gzip, while_there, wish
from attnstore.serve.forms import TYPES
from attnstore.serve.map_forms import as_json, as_npy
from attnstore.serve.problems import KINDS, Problem
from attnstore.serve.service import Service
from attnstore.serve.shapes import NPY, Form, Statement, problems

RESERVED = ("store", "other", "where", "format", "max_rows")
"""What the address of a question says beside the question's own parameters."""

FOREVER = "public, max-age=31536000, immutable"

StoreName = Annotated[str | None, Query(description="A store by name; the first that is served where left out.")]
Format = Annotated[Form | None, Query(description="json, csv or arrow (IPC stream); else what Accept says.")]
MaxRows = Annotated[int | None, Query(ge=1, description="Rows at most; the service has a limit of its own.")]
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]


def service_of(request: Request) -> Service:
    """The service behind an application."""
    found: Service = request.app.state.service
    return found


def known(request: Request) -> None:
    """Problem `bad-parameter` for a name that an address says twice, or that does not belong there."""
    route = request.scope["route"]
    names = [field.alias for field in route.dependant.query_params]
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name in seen:
            raise Problem("bad-parameter", f"{name[:100]} twice", "each parameter once")
        seen.add(name)
        if name not in names and route.endpoint is not ask:  # a question has parameters of its own
            raise Problem("bad-parameter", f"there is no parameter {name[:100]!r}", ", ".join(names) or "none")


router = APIRouter(dependencies=[Depends(known)])


@router.get("/v1", tags=["service"], summary="Versions, limits, stores", responses=problems())
async def service(request: Request) -> shapes.Running:
    """What runs here, what a request may cost, and what is served."""
    own = service_of(request)
    return shapes.Running(versions=tools(), limits=own.limits.shown(), stores=list(own.stores))


@router.get(
    "/v1/stores", tags=["stores"], summary="The stores", responses=problems(), response_model=list[shapes.About]
)
async def stores(request: Request) -> list[dict[str, Any]]:
    """Every store with its model, sizes, licence, snapshot and the address of its files."""
    return [store.about() for store in service_of(request).stores.values()]


@router.get("/v1/stores/{store}", tags=["stores"], summary="One store", responses=problems("not-found"))
async def store(request: Request, store: str) -> shapes.About:
    """Model, sizes, licence, snapshot, kept evidence and the address of the files."""
    return shapes.About(**service_of(request).store(store).about())


@router.get(
    "/v1/stores/{store}/schema",
    tags=["stores"],
    summary="The tables of a store",
    responses=problems("not-found", "busy", "damaged", "timeout", "memory"),
)
async def schema(request: Request, store: str) -> shapes.Tables:
    """The tables that SQL can name, each with its columns and their types."""
    own = service_of(request)
    found = own.store(store)
    tables = await while_there(request, own.tables(found))
    return shapes.Tables(store=found.name, snapshot=found.content_hash, tables=tables)


@router.get("/v1/evidence", tags=["stores"], summary="Evidence that a store keeps", responses=problems("not-found"))
async def evidence(request: Request, store: StoreName = None) -> shapes.Evidence:
    """What was made with the model and cannot be computed from maps: additions, their tables and parameters."""
    found = service_of(request).store(store)
    return shapes.Evidence(store=found.name, snapshot=found.content_hash, additions=found.additions())


@router.get("/v1/questions", tags=["questions"], summary="The questions", responses=problems())
async def catalogue(request: Request) -> list[shapes.Described]:
    """Every question that ships, with its parameters and columns."""
    return [_described(question) for question in questions().values()]


@router.get(
    "/v1/questions/{name:path}",
    tags=["questions"],
    summary="Ask a question",
    response_class=Response,
    responses={**shapes.ANSWER, **shapes.NOT_CHANGED},
)
async def ask(
    request: Request,
    name: str,
    store: StoreName = None,
    other: Annotated[str | None, Query(description="The second store, for compare/… questions.")] = None,
    where: Annotated[
        str | None, Query(description="A condition in SQL on the columns of `examples`.", max_length=4096)
    ] = None,
    format: Format = None,  # noqa: A002 - the parameter's name
    max_rows: MaxRows = None,
) -> Response:
    """The answer to a question; its own parameters stand beside these in the address."""
    own = service_of(request)
    form = _form(request, format)
    chosen = [own.store(store), *([own.store(other)] if other is not None else [])]
    params = {key: value for key, value in request.query_params.items() if key not in RESERVED}
    asked = own.asked(chosen, name, params, where=where, form=form, max_rows=max_rows)
    # Weak: it names what is said, not its bytes, which tell the time it took and may be packed.
    headers = {"etag": f'W/"{asked.key[:32]}"', "cache-control": "private, max-age=60"}
    if _is_named(request.headers.get("if-none-match", ""), headers["etag"]):
        return Response(status_code=304, headers={**headers, "vary": "Accept, Accept-Encoding"})
    own.held.check()
    is_fresh = "no-cache" in request.headers.get("cache-control", "")
    answer = await while_there(request, own.answer(asked, fresh=is_fresh))
    delivery = _handed_over(request, answer, form, headers)
    request.scope["attnstore.repeats"].keep(request.scope, asked.key, delivery)
    return delivery


@router.post("/v1/query", tags=["sql"], summary="Run SQL", response_class=Response, responses=shapes.ANSWER)
async def query(request: Request, statement: Statement) -> Response:
    """The answer to one SELECT over the published tables."""
    return await _run(request, statement)


@router.get("/v1/query", tags=["sql"], summary="Run SQL, as a link", response_class=Response, responses=shapes.ANSWER)
async def linked_query(
    request: Request,
    sql: Annotated[str, Query(description="One SELECT over the published tables.", min_length=1, max_length=65536)],
    store: StoreName = None,
    params: Annotated[str | None, Query(description="Values of its $names, as a JSON object.")] = None,
    format: Format = None,  # noqa: A002 - the parameter's name
    max_rows: MaxRows = None,
) -> Response:
    """The same for an address that can be shared."""
    return await _run(
        request, Statement(sql=sql, params=_object(params), store=store, format=format, max_rows=max_rows)
    )


@router.get(
    "/v1/attention/{example}/{layer}/{head}",
    tags=["maps"],
    summary="One map",
    response_class=Response,
    responses=shapes.MAP,
)
async def attention(
    request: Request,
    example: str,
    layer: Number,
    head: Number,
    store: StoreName = None,
    kind: Annotated[str | None, Query(description="encoder, decoder or cross; the first that there is.")] = None,
    level: Annotated[Literal["token", "word"], Query()] = "token",
    specials: Annotated[bool, Query(description="With special tokens.")] = True,
    renormalise: Annotated[bool, Query(description="Rows divided by their sums, after hiding.")] = False,
    hide: Annotated[
        str | None, Query(description="Classes of keys to set to 0: special, cls, sep, punct; with commas.")
    ] = None,
    weights: Annotated[
        Literal["attention", "norm", "layer_norm", "residual_norm", "residual_norm_ln", "gradient", "integrated"],
        Query(),
    ] = "attention",
    format: Annotated[Literal["json", "npy"] | None, Query()] = None,  # noqa: A002 - the parameter's name
) -> Response:
    """The weights [query, key] of one head in one example, by number or name, as JSON with labels or as .npy."""
    own = service_of(request)
    is_npy = format == "npy" or (format is None and _wished(request, (TYPES["json"], NPY)) == NPY)
    which: int | str = int(example) if example.isdecimal() and len(example) < 10 else example
    hidden = tuple(part.strip() for part in hide.split(",") if part.strip()) if hide else ()
    own.held.check()
    of = own.store(store)
    options = {"kind": kind, "level": level, "specials": specials, "renormalise": renormalise, "hide": hidden}
    found, snapshot = await while_there(request, own.attention(of, which, layer, head, **options, weights=weights))
    said = {"snapshot": snapshot, "truncated": False, "cite": of.cite()}
    headers = {**_said(said), "cache-control": "private, max-age=60", "vary": "Accept, Accept-Encoding"}
    if is_npy:
        body = await run_in_threadpool(as_npy, found, own.limits.max_arrow_bytes)
        return Delivery(own.held, body, headers, NPY, packed=False)
    body = await run_in_threadpool(as_json, found, layer, head, said, own.limits.max_bytes)
    return Delivery(own.held, body, headers, TYPES["json"], takes_gzip(request))


@router.get("/healthz", tags=["service"], summary="Whether the process runs", responses=problems())
async def healthz() -> shapes.Fine:
    """Always ok."""
    return shapes.Fine(status="ok")


@router.get("/readyz", tags=["service"], summary="Whether a worker answers", responses=problems("busy"))
async def readyz(request: Request) -> shapes.Fine:
    """ok where a worker answers."""
    await while_there(request, service_of(request).pool.ask({"do": "ping"}))
    return shapes.Fine(status="ok")


@router.get(
    "/metrics",
    tags=["service"],
    summary="Numbers for Prometheus",
    response_class=PlainTextResponse,
    responses=problems(),
)
async def metrics(request: Request) -> Response:
    """Counts of requests, bytes and killed workers, and how long they took."""
    return Response(service_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/problems/{kind}", tags=["service"], summary="What a problem means", responses=problems("not-found"))
async def meaning(kind: str) -> shapes.Meaning:
    """The title and status of a kind of problem."""
    if kind not in KINDS:
        raise Problem("not-found", f"no problem {kind!r}", f"one of {', '.join(KINDS)}")
    return shapes.Meaning(type=f"/problems/{kind}", status=KINDS[kind][0], title=KINDS[kind][1])


async def _run(request: Request, statement: Statement) -> Response:
    own = service_of(request)
    form = _form(request, statement.format)
    store = own.store(statement.store)
    own.held.check()
    work = own.sql(store, statement.sql, statement.params, form=form, max_rows=statement.max_rows)
    return _handed_over(request, await while_there(request, work), form, {"cache-control": "no-store"})


def _handed_over(request: Request, answer: Answer, form: str, headers: Mapping[str, str]) -> Delivery:
    own, head = service_of(request), answer.head
    own.metrics.rows.inc(head["rows"])
    said = {**_said(head), "attnstore-rows": str(head["rows"]), "vary": "Accept, Accept-Encoding", **headers}
    # Arrow packs what it holds, and readers take it as it is.
    return Delivery(own.held, answer.body, said, TYPES[form], form != "arrow" and takes_gzip(request))


def _said(about: Mapping[str, Any]) -> dict[str, str]:
    """What names an answer, as headers."""
    return {
        "attnstore-snapshot": about["snapshot"],
        "attnstore-truncated": str(about["truncated"]).lower(),
        "attnstore-cite": base64.b64encode(json.dumps(about["cite"]).encode()).decode(),
    }


def _is_named(condition: str, etag: str) -> bool:
    """Whether If-None-Match names this ETag; strong and weak ones are alike here."""
    named = {part.strip().removeprefix("W/") for part in condition.split(",")}
    return etag.removeprefix("W/") in named


def _form(request: Request, given: str | None) -> str:
    """The form that is asked for: by `format`, else by Accept."""
    if given is not None:
        return given
    wished = _wished(request, tuple(TYPES.values()))
    return next(form for form, name in TYPES.items() if name == wished)


def _wished(request: Request, types: tuple[str, ...]) -> str:
    accept = request.headers.get("accept", "*/*")
    if (found := wish(accept, types)) is None:
        raise Problem("not-acceptable", accept[:200], ", ".join(kind.partition(";")[0] for kind in types))
    return found


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise Problem("bad-parameter", "params", 'a JSON object of plain values, such as {"form": "the"}')
    return found


def _described(question: Question) -> shapes.Described:
    return shapes.Described(
        name=question.name,
        help=question.help,
        stores=2 if question.compares else 1,
        params=[
            shapes.Param(
                name=param.name,
                type=param.type,
                required=param.default is REQUIRED,
                default=None if param.default is REQUIRED else param.default,  # type: ignore[arg-type]
                allowed=param.allowed,
            )
            for param in question.params.values()
        ],
        columns=[shapes.Meant(name=column.name, about=column.meaning) for column in question.returns],
        source=question.source,
    )
