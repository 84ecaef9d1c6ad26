"""This file fills templates: everything from a store is escaped, and the style of our SVG is known to the policy."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.staticfiles import StaticFiles

from attnstore.serve.problems import Problem
from attnstore.show import svg
from attnstore.show.cell import written

HERE = Path(__file__).parent

TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters["written"] = written


def style_hash() -> str:
    """What the content policy calls the style inside of our SVG."""
    return "sha256-" + base64.b64encode(hashlib.sha256(svg.STYLE.encode()).digest()).decode()


def render(request: Request, template: str, /, status: int = 200, **values: Any) -> HTMLResponse:
    """A page. Every template may name the service's stores and the address that was asked for."""
    service = request.app.state.service
    about = {
        "stores": list(service.stores.values()),
        "here": request.url,
        "has_token": bool(request.app.state.access.token),
    }
    text = TEMPLATES.get_template(template).render({"store": None, **about, **values})
    return HTMLResponse(text, status, {"cache-control": "private, no-cache"})


def is_page(request: Request) -> bool:
    """Whether a person asked: a browser, for anything but the API and the files."""
    is_api = request.url.path.startswith(("/v1", "/files/", "/problems/", "/static/"))
    return not is_api and "text/html" in request.headers.get("accept", "")


def problem_page(request: Request, problem: Problem) -> Response:
    """The problem for a person."""
    return render(request, "problem.html", problem.status, problem=problem.body())


def static() -> StaticFiles:
    """The folder of styles and scripts."""
    return StaticFiles(directory=HERE / "static")
