"""This file puts the service together: API, files and pages behind one guard."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp

from attnstore.format.commit import tools
from attnstore.serve import api, files, pages
from attnstore.serve.access import Access, Guard, problem_response
from attnstore.serve.answers import Answers
from attnstore.serve.delivery import Gone, Held
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics
from attnstore.serve.openapi import document
from attnstore.serve.pool import Pool
from attnstore.serve.preparing import preparing
from attnstore.serve.problems import Problem, problem
from attnstore.serve.published import Published
from attnstore.serve.repeats import Repeats
from attnstore.serve.service import Service

ABOUT = """Attention maps of language models, and what was counted in them, read-only.
Every answer names the snapshot that it comes from, says when it was cut, and carries what cites it."""


def make_app(stores: Mapping[str, Published], limits: Limits, access: Access) -> ASGIApp:
    """The service over these stores. Its workers start and end with the application's lifespan."""
    metrics = Metrics()
    places = {name: store.place() for name, store in stores.items()}
    pool = Pool(limits, places, metrics)
    service = Service(stores, limits, metrics, pool, Answers(limits.cache, metrics), Held(limits.held))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with preparing(places, limits, metrics) as prepared:
            # The document takes a second to write, in which nobody else would be answered.
            await asyncio.gather(pool.open(prepared), asyncio.to_thread(app.openapi))
            try:
                yield
            finally:
                await pool.close()

    class Documented(FastAPI):
        def openapi(self) -> dict[str, Any]:
            return document(self)

    # The pages of FastAPI fetch their scripts from elsewhere.
    app = Documented(
        title="attnstore",
        description=ABOUT,
        version=tools()["attnstore"],
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service, app.state.access = service, access
    app.include_router(api.router)
    app.include_router(files.router)
    pages.add(app)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        found = problem(error)
        if found.kind == "internal":
            logging.getLogger("attnstore.serve").error("a request failed", exc_info=error)
        return _told(request, found)

    @app.exception_handler(Problem)
    async def told(request: Request, error: Problem) -> Response:
        return _told(request, error)

    @app.exception_handler(RequestValidationError)
    async def not_valid(request: Request, error: RequestValidationError) -> Response:
        said = "; ".join(f"{'.'.join(map(str, one['loc'][1:]))}: {one['msg']}" for one in error.errors()[:5])
        return _told(request, Problem("bad-parameter", said))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        answer = _told(request, _of(request, error))
        if error.status_code == 405:
            answer.headers["allow"] = _allowed(app, request)
        return answer

    @app.exception_handler(Gone)
    async def gone(request: Request, error: Gone) -> Response:
        return Response(status_code=499)  # for the counters; nobody reads it

    return Guard(Repeats(app, service.answers, metrics), access, metrics)


def _of(request: Request, error: HTTPException) -> Problem:
    """The problem that the framework met."""
    if isinstance(error.__cause__, Problem):  # one that was met while the body was read
        return error.__cause__
    if error.status_code == 404:
        return Problem("not-found", "no such address", "one that /openapi.json lists")
    if error.status_code == 405:
        return Problem("not-allowed", request.method, "what Allow lists")
    return Problem("bad-parameter" if error.status_code < 500 else "internal", "the request cannot be read")


def _allowed(app: FastAPI, request: Request) -> str:
    """The methods of an address: the framework names those of the first route alone."""

    def fits(method: str) -> bool:
        return any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in app.routes)

    methods = [method for method in ("GET", "POST") if fits(method)]
    return ", ".join(["HEAD", *methods] if "GET" in methods else methods)


def _told(request: Request, error: Problem) -> Response:
    return pages.problem_page(request, error) if pages.is_page(request) else problem_response(error)
