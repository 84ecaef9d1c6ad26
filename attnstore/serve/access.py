"""This file stands before every request: who may ask, under which name, from which page, and how much."""

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attnstore.serve.metrics import Metrics
from attnstore.serve.problems import Problem

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
"""Binds to every address of the machine; the service then goes by each of them."""
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
EXPOSED = "etag, content-range, retry-after, attnstore-snapshot, attnstore-truncated, attnstore-rows, attnstore-cite"
READABLE = {
    "access-control-allow-headers": "authorization, content-type, range, if-none-match, if-range",
    "access-control-allow-methods": "GET, HEAD, POST",
    "access-control-expose-headers": EXPOSED,
    "access-control-max-age": "600",
    "cross-origin-resource-policy": "cross-origin",
}
"""What lets pages of another site read an answer, beside the name of that site."""

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/@\[\]\s]+)(?::\d{0,5})?")


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask. `hosts` are the names of the service as `hosts()` gives them; `token` None asks for none."""

    hosts: tuple[str, ...]
    token: str | None = None
    origins: tuple[str, ...] = ()
    max_body: int = 256 * 1024
    styles: tuple[str, ...] = ()

    def cookie(self) -> str:
        """What the browser keeps of the token; it says nothing about the token itself."""
        return hmac.new((self.token or "").encode(), b"attnstore page", hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        """Whether this is the token, told in constant time."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def is_own(self, host: str) -> bool:
        """Whether the service goes by this name, as a Host header says it: with or without a port."""
        found = _HOST.fullmatch(host.strip())
        if found is None:
            return False
        name = plain_name(found[1])
        # Another name can be made to lead here by whoever owns it; an address always leads to itself.
        return name in self.hosts or (_is_address(name) and any(one in self.hosts for one in EVERYWHERE))


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
        is_head = scope["method"] == "HEAD"
        if is_head and not scope["path"].startswith(("/files/", "/static/")):  # which save themselves the body
            scope = {**scope, "method": "GET"}
        answer = _Answer(send, scope, self._said(allowed), self._metrics, is_head)
        try:
            response = self._preflight(scope, headers, allowed) or self._refused(scope, headers, allowed)
            if response is not None:
                await response(scope, receive, answer)
            else:
                await self._app(scope, self._bounded(receive), answer)
        except Exception as error:
            if answer.is_complete:
                return  # it was logged where it was turned into that answer
            if answer.is_begun or not isinstance(error, Problem):
                raise
            await problem_response(error)(scope, receive, answer)

    def _said(self, allowed: str | None) -> dict[str, str]:
        if allowed is None:
            return self._headers
        return {**self._headers, **READABLE, "access-control-allow-origin": allowed}

    def _preflight(self, scope: Scope, headers: dict[str, str], allowed: str | None) -> Response | None:
        """The answer to a browser that asks whether a page may ask; it brings no token with it."""
        is_asked = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        is_own = self._access.is_own(headers.get("host", ""))
        return Response(status_code=204) if is_asked and allowed and is_own else None

    def _refused(self, scope: Scope, headers: dict[str, str], allowed: str | None) -> Response | None:
        try:
            self._check(scope, headers, allowed)
        except Problem as problem:
            wants_page = "text/html" in headers.get("accept", "") and scope["method"] == "GET"
            if problem.kind == "unauthorised" and wants_page:
                asked = scope["path"] + ("?" + scope["query_string"].decode("latin-1") if scope["query_string"] else "")
                return RedirectResponse(f"/login?to={quote(asked, safe='')}", 303, {"cache-control": "no-store"})
            return problem_response(problem)
        return None

    def _check(self, scope: Scope, headers: dict[str, str], allowed: str | None) -> None:
        access, host = self._access, headers.get("host", "")
        if not access.is_own(host):
            raise Problem("wrong-host", f"Host: {host[:200]}", "a name that --host or --name gave")
        if allowed is None and not _is_same_site(scope["method"], headers, host):
            raise Problem("cross-origin", "a request from a page of another site", "--cors-origin for that site")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 15 or int(length) > access.max_body:
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

    def _bounded(self, receive: Receive) -> Receive:
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._access.max_body:
                raise Problem("too-large", "a request body", f"at most {self._access.max_body} bytes")
            return message

        return bounded


class _Answer:
    """Sends an answer with the headers that belong to every one, and counts it."""

    def __init__(self, send: Send, scope: Scope, headers: dict[str, str], metrics: Metrics, is_head: bool) -> None:
        self._send, self._scope, self._metrics, self._is_head = send, scope, metrics, is_head
        self._headers = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        self.is_begun = self.is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.is_begun = True
            given: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
            own = {name for name, _ in given}
            given += [pair for pair in self._headers if pair[0] not in own]
            # One answer for all would keep a site that may read from it, or let one that may not.
            message = {**message, "headers": [*given, (b"vary", b"Origin")]}
            what = getattr(self._scope.get("route"), "path", "none")
            self._metrics.requests.labels(what, str(message["status"])).inc()
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            self._metrics.sent.inc(0 if self._is_head else len(body))
            message = {**message, "body": b"" if self._is_head else body}
        await self._send(message)
        self.is_complete = self.is_complete or not message.get("more_body", message["type"] != "http.response.body")


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
    bind = plain_name(bind)
    own: tuple[str, ...] = (bind, *LOOPBACK) if bind in LOOPBACK else (bind,)
    if bind in EVERYWHERE:
        own = (bind, *LOOPBACK, plain_name(socket.gethostname()))
    return tuple(dict.fromkeys((*own, *map(plain_name, names))))


def plain_name(name: str) -> str:
    """A name as it is compared: small letters, no brackets, no dot at its end; an address at its shortest."""
    name = name.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")
    return str(ipaddress.ip_address(name)) if _is_address(name) else name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same_site(method: str, headers: dict[str, str], host: str) -> bool:
    """Whether a browser's request comes from a page of this service or from no page: a link, an address typed in."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        is_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site in ("same-origin", "none") or (is_page and method == "GET")
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc.lower() == host.strip().lower()


def _cookie(headers: dict[str, str]) -> str:
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value.strip('"')
    return ""
