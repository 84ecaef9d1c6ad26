"""This file is the API: stores, questions, SQL and maps as JSON, CSV, Arrow or .npy."""

import base64
import io
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, Field

from attnstore.catalogue.catalogue import questions
from attnstore.catalogue.question import REQUIRED, Question
from attnstore.errors import AttnStoreError
from attnstore.format.commit import tools
from attnstore.serve.answers import Answer
from attnstore.serve.forms import TYPES
from attnstore.serve.problems import KINDS, Problem, problem
from attnstore.serve.service import Service

RESERVED = ("store", "other", "where", "format", "max_rows")
"""What the address of a question says beside the question's own parameters."""

FOREVER = "public, max-age=31536000, immutable"

router = APIRouter()

Form = Literal["json", "csv", "arrow"]
StoreName = Annotated[str | None, Query(description="A store by name; the first that is served where left out.")]
Format = Annotated[Form | None, Query(description="json, csv or arrow (IPC stream); else what Accept says.")]
MaxRows = Annotated[int | None, Query(ge=1, description="Rows at most; the service has a limit of its own.")]
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "; ".join(title for code, title in KINDS.values() if code == status),
        "content": {"application/problem+json": {}},
    }
    for status in sorted({status for status, _ in KINDS.values()})
}


class Statement(BaseModel):
    """A statement of SQL and where it is asked."""

    sql: str = Field(description="One SELECT over the published tables.", max_length=65536)
    params: dict[str, str | int | float | bool | None] = Field(
        default_factory=dict, description="Values of its $names."
    )
    store: str | None = None
    format: Form | None = None
    max_rows: int | None = Field(default=None, ge=1)


def service_of(request: Request) -> Service:
    """The service behind an application."""
    found: Service = request.app.state.service
    return found


@router.get("/v1", tags=["service"], summary="Versions, limits, stores", responses=PROBLEMS)
async def service(request: Request) -> dict[str, Any]:
    """What runs here, what a request may cost, and what is served."""
    own = service_of(request)
    return {"versions": tools(), "limits": own.limits.shown(), "stores": list(own.stores)}


@router.get("/v1/stores", tags=["stores"], summary="The stores", responses=PROBLEMS)
async def stores(request: Request) -> list[dict[str, Any]]:
    """Every store with its model, sizes, licence, snapshot and the address of its files."""
    return [store.about() for store in service_of(request).stores.values()]


@router.get("/v1/stores/{store}", tags=["stores"], summary="One store", responses=PROBLEMS)
async def store(request: Request, store: str) -> dict[str, Any]:
    """Model, sizes, licence, snapshot, kept evidence and the address of the files."""
    return service_of(request).store(store).about()


@router.get("/v1/stores/{store}/schema", tags=["stores"], summary="The tables of a store", responses=PROBLEMS)
async def schema(request: Request, store: str) -> dict[str, Any]:
    """The tables that SQL can name, each with its columns and their types."""
    own = service_of(request)
    found = own.store(store)
    return {"store": found.name, "snapshot": found.content_hash, "tables": await own.tables(found)}


@router.get("/v1/evidence", tags=["stores"], summary="Evidence that a store keeps", responses=PROBLEMS)
async def evidence(request: Request, store: StoreName = None) -> dict[str, Any]:
    """What was made with the model and cannot be computed from maps: additions, their tables and parameters."""
    found = service_of(request).store(store)
    kept = [
        {
            "id": unit.id,
            "tables": dict(unit.rows),
            **{name: unit.facts[name] for name in ("evidence", "scope", "parameters") if name in unit.facts},
        }
        for unit in found.store.contents.additions
    ]
    return {"store": found.name, "snapshot": found.content_hash, "additions": kept}


@router.get("/v1/questions", tags=["questions"], summary="The questions", responses=PROBLEMS)
async def catalogue(request: Request) -> list[dict[str, Any]]:
    """Every question that ships, with its parameters and columns."""
    return [_described(question) for question in questions().values()]


@router.get("/v1/questions/{name:path}", tags=["questions"], summary="Ask a question", responses=PROBLEMS)
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
    params = parameters(request)
    form = _form(request, format)
    chosen = [own.store(store), *([own.store(other)] if other is not None else [])]
    is_fresh = "no-cache" in request.headers.get("cache-control", "")
    answer = await own.ask(chosen, name, params, where=where, form=form, max_rows=max_rows, fresh=is_fresh)
    if request.headers.get("if-none-match") == answer.etag:
        return Response(status_code=304, headers={"etag": answer.etag})
    return _handed_over(own, answer, form, {"etag": answer.etag, "cache-control": "private, max-age=60"})


@router.post("/v1/query", tags=["sql"], summary="Run SQL", responses=PROBLEMS)
async def query(request: Request, statement: Statement) -> Response:
    """The answer to one SELECT over the published tables."""
    return await _run(request, statement)


@router.get("/v1/query", tags=["sql"], summary="Run SQL, as a link", responses=PROBLEMS)
async def linked_query(
    request: Request,
    sql: Annotated[str, Query(description="One SELECT over the published tables.", max_length=65536)],
    store: StoreName = None,
    params: Annotated[str | None, Query(description="Values of its $names, as a JSON object.")] = None,
    format: Format = None,  # noqa: A002 - the parameter's name
    max_rows: MaxRows = None,
) -> Response:
    """The same for an address that can be shared."""
    return await _run(
        request, Statement(sql=sql, params=_object(params), store=store, format=format, max_rows=max_rows)
    )


@router.get("/v1/attention/{example}/{layer}/{head}", tags=["maps"], summary="One map", responses=PROBLEMS)
async def attention(
    request: Request,
    example: str,
    layer: Annotated[int, Field(ge=0)],
    head: Annotated[int, Field(ge=0)],
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
    which: int | str = int(example) if example.isdecimal() and len(example) < 10 else example
    hidden = tuple(part.strip() for part in hide.split(",") if part.strip()) if hide else ()
    found, snapshot = await own.attention(
        own.store(store),
        which,
        layer,
        head,
        kind=kind,
        level=level,
        specials=specials,
        renormalise=renormalise,
        hide=hidden,
        weights=weights,
    )
    accept = request.headers.get("accept", "")
    headers = {"attnstore-snapshot": snapshot, "cache-control": "private, max-age=60"}
    if format == "npy" or (format is None and "application/x-npy" in accept):
        written = io.BytesIO()
        np.save(written, found.to_numpy(), allow_pickle=False)
        return Response(written.getvalue(), headers=headers, media_type="application/x-npy")
    rows = found.to_numpy().astype(object)
    rows[np.isnan(found.to_numpy())] = None
    body = {
        "example": found.example,
        "name": found.name,
        "kind": found.kind,
        "layer": layer,
        "head": head,
        "level": found.level,
        "of": found.of,
        "queries": found.queries,
        "keys": found.keys,
        "weights": rows.tolist(),
        "snapshot": snapshot,
    }
    return JSONResponse(body, headers=headers)


@router.get("/healthz", tags=["service"], summary="Whether the process runs")
async def healthz() -> dict[str, str]:
    """Always ok."""
    return {"status": "ok"}


@router.get("/readyz", tags=["service"], summary="Whether a worker answers", responses=PROBLEMS)
async def readyz(request: Request) -> dict[str, str]:
    """ok where a worker answers."""
    await service_of(request).pool.ask({"do": "ping"})
    return {"status": "ok"}


@router.get("/metrics", tags=["service"], summary="Numbers for Prometheus", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counts of requests, bytes and killed workers, and how long they took."""
    return Response(service_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/problems/{kind}", tags=["service"], summary="What a problem means", responses=PROBLEMS)
async def meaning(kind: str) -> dict[str, Any]:
    """The title and status of a kind of problem."""
    if kind not in KINDS:
        raise Problem("not-found", f"no problem {kind!r}", f"one of {', '.join(KINDS)}")
    return {"type": f"/problems/{kind}", "status": KINDS[kind][0], "title": KINDS[kind][1]}


def parameters(request: Request) -> dict[str, object]:
    """The question's own parameters of an address; bad-parameter for one that stands there twice."""
    found: dict[str, object] = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            raise Problem("bad-parameter", f"{name} twice", "each parameter once")
        if name not in RESERVED:
            found[name] = value
    return found


async def _run(request: Request, statement: Statement) -> Response:
    own = service_of(request)
    form = _form(request, statement.format)
    store = own.store(statement.store)
    answer = await own.sql(store, statement.sql, statement.params, form=form, max_rows=statement.max_rows)
    return _handed_over(own, answer, form, {"cache-control": "no-store"})


def _handed_over(own: Service, answer: Answer, form: str, headers: Mapping[str, str]) -> Response:
    own.metrics.rows.inc(answer.head["rows"])
    said = {
        "attnstore-snapshot": answer.head["snapshot"],
        "attnstore-truncated": str(answer.head["truncated"]).lower(),
        "attnstore-rows": str(answer.head["rows"]),
        "attnstore-cite": base64.b64encode(json.dumps(answer.head["cite"]).encode()).decode(),
        "vary": "Accept",
    }
    return Response(answer.body, headers={**said, **headers}, media_type=TYPES[form])


def _form(request: Request, given: str | None) -> str:
    """The form that is asked for: by `format`, else by the first type in Accept that is known."""
    if given is not None:
        return given
    accept = request.headers.get("accept", "*/*")
    known = {name.partition(";")[0]: form for form, name in TYPES.items()}
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in known:
            return known[kind]
        if kind in ("*/*", "application/*", "text/html", ""):
            return "json"
    raise Problem("not-acceptable", accept[:200], ", ".join(known))


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise Problem("bad-parameter", "params", 'a JSON object of plain values, such as {"form": "the"}')
    return found


def _described(question: Question) -> dict[str, Any]:
    try:
        return {
            "name": question.name,
            "help": question.help,
            "stores": 2 if question.compares else 1,
            "params": [
                {
                    "name": param.name,
                    "type": str(param.type),
                    "required": param.default is REQUIRED,
                    "default": None if param.default is REQUIRED else param.default,
                    "allowed": param.allowed,
                }
                for param in question.params.values()
            ],
            "columns": [{"name": column.name, "about": column.meaning} for column in question.returns],
            "source": question.source,
        }
    except AttnStoreError as error:
        raise problem(error) from None
