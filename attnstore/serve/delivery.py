"""This file hands answers over: in which form, piece by piece, and not more at once than memory has room for."""

import asyncio
import zlib
from collections.abc import Coroutine, Iterator, Mapping
from copy import copy
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from attnstore.serve.problems import Problem

PIECE = 64 * 1024
"""Bytes that are sent at once; the next ones follow when a client has taken them."""

_WORTH_PACKING = 1024
_GZIP = 16 + zlib.MAX_WBITS

Given = TypeVar("Given")


class Held:
    """The bytes of all answers that clients are fetching at this moment."""

    def __init__(self, limit: int) -> None:
        self.limit, self.bytes = limit, 0

    def check(self, size: int = 1) -> None:
        """Problem `busy` where an answer of so many bytes would be too much; one alone is handed over in any case."""
        if self.bytes and self.bytes + size > self.limit:
            raise Problem("busy", f"clients are fetching {self.bytes} bytes of answers", "", "Come again", 5)


class Delivery(Response):
    """An answer that is in memory until the client has fetched it; packed with gzip where that is wished and helps."""

    def __init__(self, held: Held, body: bytes, headers: Mapping[str, str], media_type: str, packed: bool) -> None:
        is_packed = packed and len(body) >= _WORTH_PACKING
        said = {"content-encoding": "gzip"} if is_packed else {"content-length": str(len(body))}
        super().__init__(None, headers={**headers, **said}, media_type=media_type)
        if is_packed:
            del self.headers["content-length"]  # of the None; what it will be is not known yet
        self._held, self._whole, self._is_packed = held, body, is_packed
        held.check(len(body))

    def again(self, body: bytes) -> "Delivery":
        """The same answer, as it was before it was packed, for another client."""
        self._held.check(len(body))
        found = copy(self)
        found._whole = body
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        size = len(self._whole)
        self._held.bytes += size
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if size <= PIECE and not self._is_packed:
                await send({"type": "http.response.body", "body": self._whole, "more_body": False})
                return
            for piece in _packed(self._whole) if self._is_packed else _pieces(self._whole):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)  # others are to be answered meanwhile
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._held.bytes -= size


def _pieces(body: bytes) -> Iterator[bytes]:
    view = memoryview(body)
    for first in range(0, len(body), PIECE):
        yield bytes(view[first : first + PIECE])


def _packed(body: bytes) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=_GZIP)
    for piece in _pieces(body):
        if done := packer.compress(piece):
            yield done
    yield packer.flush()


def takes_gzip(request: Request) -> bool:
    """Whether the client unpacks gzip."""
    return wish(request.headers.get("accept-encoding", ""), ("gzip",)) is not None


def wish(header: str, known: tuple[str, ...]) -> str | None:
    """What a header such as Accept likes best among what is known, the first of equals; None where it likes none.

    >>> wish("text/csv;q=0.5, application/*", ("text/csv", "application/json"))
    'application/json'
    """
    liked: dict[str, float] = {}
    for part in header.split(","):
        kind, *rest = (word.strip().lower() for word in part.split(";"))
        liked[kind] = next((_quality(word) for word in rest if word.startswith("q=")), 1.0)
    best: tuple[float, str | None] = (0.0, None)
    for name in known:
        plain = name.partition(";")[0]
        ranges = (plain, plain.partition("/")[0] + "/*", "*/*" if "/" in plain else "*")
        quality = next((liked[one] for one in ranges if one in liked), 0.0)
        best = max(best, (quality, name), key=lambda pair: pair[0])  # of equals the first
    return best[1]


def _quality(word: str) -> float:
    try:
        return min(max(float(word[2:]), 0.0), 1.0)
    except ValueError:
        return 0.0


async def while_there(request: Request, work: Coroutine[Any, Any, Given]) -> Given:
    """What the work gives; it is given up where the client goes away meanwhile, so that nobody waits in line for it."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # where nobody is told of it any more
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        gone.cancel()
        task.cancel()


class Gone(Exception):
    """The client went away; there is nobody to tell."""


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
