"""This file puts the service together: API, files and pages behind one guard."""

import contextlib
import logging
from collections.abc import AsyncIterator, Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from attnstore.format.commit import tools
from attnstore.serve import api, files, site
from attnstore.serve.access import Access, Guard, problem_response
from attnstore.serve.answers import Answers
from attnstore.serve.limits import Limits
from attnstore.serve.metrics import Metrics
from attnstore.serve.pool import Pool
from attnstore.serve.problems import Problem, problem
from attnstore.serve.published import Published
from attnstore.serve.service import Service

ABOUT = """Attention maps of language models, and what was counted in them, read-only.
Every answer names the snapshot that it comes from, says when it was cut, and carries what cites it."""


def make_app(stores: Mapping[str, Published], limits: Limits, access: Access) -> ASGIApp:
    """The service over these stores. Its workers start and end with the application's lifespan."""
    metrics = Metrics()
    pool = Pool(limits, {name: store.place() for name, store in stores.items()}, metrics)
    service = Service(stores, limits, metrics, pool, Answers(limits.cache, metrics))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await pool.open()
        try:
            yield
        finally:
            await pool.close()

    # The pages of FastAPI fetch their scripts from elsewhere.
    app = FastAPI(
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
    site.add(app)

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
    async def not_there(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            return _told(request, Problem("not-allowed", request.method, "GET"))
        return _told(request, Problem("not-found" if error.status_code == 404 else "internal", request.url.path))

    return Guard(app, access, metrics)


def _told(request: Request, error: Problem) -> Response:
    return site.problem_page(request, error) if site.is_page(request) else problem_response(error)
