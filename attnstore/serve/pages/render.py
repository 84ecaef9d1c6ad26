"""This file fills templates: everything from a store is escaped, and the style of our SVG is known to the policy."""

import base64
import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import markupsafe
from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.staticfiles import StaticFiles

from attnstore.serve.problems import Problem
from attnstore.show import svg
from attnstore.show.cell import visible, written
from attnstore.show.markup import Markup

HERE = Path(__file__).parent
LONGEST = 2048
"""Characters of one value that a page shows."""

QUOTED = re.compile("`([^`]+)`")

TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def cut(text: object, most: int = LONGEST) -> str:
    """A value as one line of text, closed by "…" where it is longer than `most` characters."""
    line = visible(text) if isinstance(text, str) else written(text)
    return line if len(line) <= most else line[: most - 1] + "…"


def percent(share: float | None) -> str:
    """A share (0-1) as whole percent, with one decimal near either end."""
    if share is None:
        return "-"
    number = share * 100
    is_near_end = 0 < number < 2 or 98 < number < 100
    return f"{number:.1f} %" if is_near_end else f"{number:.0f} %"


def coded(text: str) -> markupsafe.Markup:
    """The text of a question, escaped, with what stands between backquotes as code."""
    return markupsafe.Markup(QUOTED.sub(r"<code>\1</code>", str(markupsafe.escape(text))))


def counted(number: float) -> str:
    """A count with thousands set apart."""
    return f"{number:,.0f}"


def link(*parts: object, **params: object) -> str:
    """An address of this service: the first part as it stands, others escaped; parameters that are None are left out.

    A part may hold slashes, as names of questions do.
    """
    first, *others = parts
    path = "/".join([str(first), *(quote(str(part), safe="/") for part in others)])
    given = {name: written(value) for name, value in params.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def drawn(finished: Markup) -> markupsafe.Markup:
    """A drawing of ours for a template, which would escape plain text."""
    return markupsafe.Markup(finished)


TEMPLATES.filters |= {"written": written, "cut": cut, "percent": percent, "counted": counted, "coded": coded}
TEMPLATES.globals["link"] = link


def style_hash() -> str:
    """What the content policy calls the style inside of our SVG."""
    return "sha256-" + base64.b64encode(hashlib.sha256(svg.STYLE.encode()).digest()).decode()


def render(request: Request, template: str, /, status: int = 200, **values: Any) -> HTMLResponse:
    """A page. Every template may name the service's stores and the address that was asked for.

    `store`, a Published, gives the page the ways through that store and its snapshot in the footer.
    """
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
    """The problem for a person, on a page of the store that the address names."""
    parts = request.url.path.split("/")
    name = parts[2] if len(parts) > 2 and parts[1] == "stores" else ""
    store = request.app.state.service.stores.get(name)
    answer = render(request, "problem.html", problem.status, problem=problem.body(), store=store)
    if problem.retry_after is not None:
        answer.headers["retry-after"] = str(problem.retry_after)
    return answer


def static() -> StaticFiles:
    """The folder of styles and scripts."""
    return StaticFiles(directory=HERE / "static")
