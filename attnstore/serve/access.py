"""This file stands before every request: who may ask, under which name, from which page, how much, how slowly."""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attnstore.serve.metrics import Metrics
from attnstore.serve.problems import Problem

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
COOKIE = "attnstore"
OPEN = ("/healthz", "/readyz", "/login", "/static/")
"""What is answered without a token."""

POLICY = "; ".join(
    (
        "default-src 'self'",
        "style-src 'self' {styles}",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask. `hosts` are the names of the service, without a port; `token` None asks for none."""

    hosts: tuple[str, ...]
    token: str | None = None
    origins: tuple[str, ...] = ()
    max_body: int = 256 * 1024
    send_time: float = 30.0
    styles: tuple[str, ...] = ()

    def cookie(self) -> str:
        """What the browser keeps of the token; it says nothing about the token itself."""
        return hmac.new((self.token or "").encode(), b"attnstore page", hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        """Whether this is the token, told in constant time."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


class Guard:
    """The middleware. It refuses before anything is read, and adds the headers that browsers obey."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self._app, self._access, self._metrics = app, access, metrics
        styles = " ".join(f"'{style}'" for style in access.styles)
        self._headers = {**HEADERS, "content-security-policy": POLICY.format(styles=styles).replace(" ;", ";")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get("origin")
        allowed = origin if origin in self._access.origins else None
        answer = self._answer(send, scope, allowed)
        try:
            self._check(scope, headers, allowed)
        except Problem as problem:
            await self._refused(problem, scope, headers)(scope, receive, answer)
            return
        if scope["method"] == "OPTIONS" and allowed:
            await Response(status_code=204)(scope, receive, answer)
            return
        try:
            await self._app(scope, self._bounded(receive, headers), answer)
        except Problem as problem:
            await problem_response(problem)(scope, receive, answer)

    def _check(self, scope: Scope, headers: dict[str, str], allowed: str | None) -> None:
        access, host = self._access, headers.get("host", "")
        if host.rpartition(":")[0].strip() not in access.hosts and host not in access.hosts:
            raise Problem("wrong-host", f"Host: {host[:200]}", "a name that --host or --name gave")
        if allowed is None and not _is_same_site(headers, host):
            raise Problem("cross-origin", "a request from a page of another site", "--cors-origin for that site")
        if int(headers.get("content-length") or 0) > access.max_body:
            raise Problem("too-large", "a request body", f"at most {access.max_body} bytes")
        path = scope["path"]
        if access.token is None or path in OPEN or path.startswith("/static/"):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and access.is_token(given.strip()):
            return
        if hmac.compare_digest(_cookie(headers).encode(), access.cookie().encode()):
            return
        raise Problem("unauthorised", "no token, or another one", "Authorization: Bearer TOKEN")

    def _refused(self, problem: Problem, scope: Scope, headers: dict[str, str]) -> Response:
        wants_page = "text/html" in headers.get("accept", "") and scope["method"] == "GET"
        if problem.kind == "unauthorised" and wants_page:
            return RedirectResponse(f"/login?to={scope['path']}", status_code=303)
        return problem_response(problem)

    def _bounded(self, receive: Receive, headers: dict[str, str]) -> Receive:
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._access.max_body:
                raise Problem("too-large", "a request body", f"at most {self._access.max_body} bytes")
            return message

        return bounded

    def _answer(self, send: Send, scope: Scope, allowed: str | None) -> Send:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message.setdefault("headers", [])}
                extra: dict[str, str] = {**self._headers}
                if allowed:
                    extra |= {
                        "access-control-allow-origin": allowed,
                        "access-control-allow-headers": "authorization, content-type, range",
                        "access-control-expose-headers": "etag, attnstore-snapshot, attnstore-truncated, attnstore-cite",
                        "cross-origin-resource-policy": "cross-origin",
                        "vary": "Origin",
                    }
                pairs = ((name.encode(), value.encode()) for name, value in extra.items())
                message["headers"] += [(name, value) for name, value in pairs if name not in own]
                route = scope.get("route")
                what = getattr(route, "path", "none")
                self._metrics.requests.labels(what, str(message["status"])).inc()
            body = message.get("body", b"")
            self._metrics.sent.inc(len(body))
            try:
                # What a client does not fetch must not be held for ever.
                await asyncio.wait_for(send(message), self._access.send_time * (1 + len(body) // 65536))
            except TimeoutError:
                raise ConnectionError("the client does not fetch its answer") from None

        return answer


def problem_response(problem: Problem) -> Response:
    """The problem as `application/problem+json`."""
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["retry-after"] = str(problem.retry_after)
    if problem.kind == "unauthorised":
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(problem.body(), problem.status, headers, media_type="application/problem+json")


def hosts(bind: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The names under which a service that is bound there may be asked."""
    own = (*LOOPBACK, bind) if bind in LOOPBACK else (bind,)
    return tuple(dict.fromkeys((*own, *names)))


def _is_same_site(headers: dict[str, str], host: str) -> bool:
    """Whether a browser's request comes from a page of this service or from no page: a link, an address typed in."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site in ("same-origin", "none") or is_link
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == host


def _cookie(headers: dict[str, str]) -> str:
    try:
        found: Any = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else str(found.value)
