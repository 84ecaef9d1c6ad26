"""This file hands over the files of the published snapshots, whole or by ranges, so that any reader works on them."""

import mimetypes
import os
import re
import stat
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import iterate_in_threadpool
from starlette.types import Receive, Scope, Send

from attnstore.serve import shapes
from attnstore.serve.api import FOREVER, service_of
from attnstore.serve.delivery import PIECE
from attnstore.serve.problems import Problem
from attnstore.serve.published import File, Published

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")

router = APIRouter()


@router.get(
    "/files/{snapshot}/",
    tags=["files"],
    summary="The files of a snapshot",
    responses=shapes.problems("not-found"),
)
async def listing(request: Request, snapshot: str, response: Response) -> shapes.Listing:
    """Every file with its bytes and sha256; `snapshot` is the number of the snapshot that they belong to."""
    found = _published(request, snapshot)
    files = {name: shapes.Entry(bytes=file.bytes, sha256=file.sha256) for name, file in found.files.items()}
    response.headers["cache-control"] = FOREVER
    return shapes.Listing(content_hash=found.content_hash, snapshot=found.store.snapshot.number, files=files)


@router.head("/files/{snapshot}/{path:path}", include_in_schema=False)
@router.get(
    "/files/{snapshot}/{path:path}",
    tags=["files"],
    summary="A file",
    response_class=Response,
    responses=shapes.FILE,
)
async def file(request: Request, snapshot: str, path: str) -> Response:
    """The bytes of one file of the snapshot; Range is understood, ETag is the sha256."""
    found = _published(request, snapshot).files.get(path)
    if found is None:
        raise Problem("not-found", "no such file in this snapshot", "one that /files/…/ lists")
    headers = {
        "etag": f'"{found.sha256}"',
        "accept-ranges": "bytes",
        "cache-control": FOREVER,
        "content-disposition": f"attachment; filename*=UTF-8''{quote(path.rpartition('/')[2])}",
    }
    condition = request.headers.get("if-none-match", "")
    if found.sha256 in condition or condition.strip() == "*":
        return Response(status_code=304, headers=headers)
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    first, stop = 0, found.bytes
    status = 200
    if (wanted := request.headers.get("range")) and _is_current(request, found):
        span = _span(wanted, found.bytes)
        if span is not None:
            (first, stop), status = span, 206
            headers["content-range"] = f"bytes {first}-{stop - 1}/{found.bytes}"
    headers["content-length"] = str(stop - first)
    if request.method == "HEAD":
        os.close(_opened(found))
        return Response(status_code=status, headers=headers, media_type=kind)
    return _Sent(found, first, stop, status, headers, kind)


class _Sent(StreamingResponse):
    """Bytes of a file, which is open while they are sent: clients that go away before leave nothing open."""

    def __init__(
        self, file: File, first: int, stop: int, status: int, headers: Mapping[str, str], media_type: str
    ) -> None:
        super().__init__((), status, headers, media_type)
        self._file, self._first, self._stop = file, first, stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them; Problem `damaged` where the file is no longer what its manifest says."""
        opened = _opened(self._file)
        try:
            # A generator that never starts runs no `finally`: the descriptor is closed here.
            self.body_iterator = iterate_in_threadpool(_blocks(opened, self._first, self._stop))
            await super().__call__(scope, receive, send)
        finally:
            os.close(opened)


def _published(request: Request, key: str) -> Published:
    for store in service_of(request).stores.values():
        if key in (store.key, store.content_hash):
            return store
    raise Problem("not-found", f"no snapshot {key[:64]!r}", "one that /v1/stores lists under files")


def _is_current(request: Request, file: File) -> bool:
    condition = request.headers.get("if-range")
    return condition is None or condition == f'"{file.sha256}"'


def _span(text: str, size: int) -> tuple[int, int] | None:
    """The first byte and the one after the last; None for several ranges or none that is understood: all is sent."""
    found = _RANGE.fullmatch(text.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        count = min(int(last), size)
        begin, stop = size - count, size
    else:
        begin, stop = int(first), min(int(last) + 1, size) if last else size
    if begin >= stop:
        raise Problem("bad-range", text[:100], f"bytes of 0-{size - 1}")
    return begin, stop


def _opened(file: File) -> int:
    """A file's descriptor; Problem `damaged` where it is no longer what its manifest says."""
    try:
        # A link in the place of a file would hand over what lies outside of the store.
        opened = os.open(file.place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        raise Problem("damaged", "a file of the store is gone or cannot be read") from None
    about = os.fstat(opened)
    if not stat.S_ISREG(about.st_mode) or about.st_size != file.bytes:
        os.close(opened)
        raise Problem("damaged", "a file of the store is not what its manifest says")
    return opened


def _blocks(opened: int, first: int, stop: int) -> Iterator[bytes]:
    while first < stop:
        block = os.pread(opened, min(PIECE, stop - first), first)
        if not block:
            raise OSError("the file is shorter than its manifest says")
        yield block
        first += len(block)
