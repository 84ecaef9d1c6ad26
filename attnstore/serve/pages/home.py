"""This file is the first page, the list of stores, and the page on which a token is typed in."""

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from attnstore.serve.access import COOKIE
from attnstore.serve.api import service_of
from attnstore.serve.pages.render import link, render
from attnstore.serve.pages.store_page import facts

router = APIRouter()


@router.get("/")
async def home(request: Request) -> Response:
    """The stores; where there is one, its page."""
    stores = list(service_of(request).stores.values())
    if len(stores) == 1:
        return RedirectResponse(link("/stores", stores[0].name), 307)
    return render(request, "home.html", about=[(store, dict(facts(store))) for store in stores])


@router.get("/login")
async def login_form(request: Request, to: str = "/") -> Response:
    """The form for the token."""
    return render(request, "login.html", to=_inside(to), wrong=False)


@router.post("/login")
async def login(request: Request) -> Response:
    """Keep that this browser knows the token."""
    given = parse_qs((await request.body()).decode(errors="replace"))
    token, to = given.get("token", [""])[0], _inside(given.get("to", ["/"])[0])
    access = request.app.state.access
    if not access.is_token(token.strip()):
        return render(request, "login.html", 401, to=to, wrong=True)
    answer = RedirectResponse(to, 303)
    answer.set_cookie(COOKIE, access.cookie(), httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return answer


def _inside(to: str) -> str:
    """An address of this service; the first page for any other."""
    # Browsers read \\ as / and leave out tabs and line ends, so that //another.site can be hidden by them.
    if not to.startswith("/") or to.startswith("//") or "\\" in to or not to.isprintable():
        return "/"
    return to
