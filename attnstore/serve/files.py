"""This file hands over the files of the published snapshots, whole or by ranges, so that any reader works on them."""

import mimetypes
import os
import re
from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from attnstore.serve.api import FOREVER, PROBLEMS, service_of
from attnstore.serve.problems import Problem
from attnstore.serve.published import File, Published

_BLOCK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")

router = APIRouter()


@router.get("/files/{snapshot}/", tags=["files"], summary="The files of a snapshot", responses=PROBLEMS)
async def listing(request: Request, snapshot: str) -> Response:
    """Every file with its bytes and sha256; `snapshot` is the number of the snapshot that they belong to."""
    found = _published(request, snapshot)
    files = {name: {"bytes": file.bytes, "sha256": file.sha256} for name, file in found.files.items()}
    body = {"content_hash": found.content_hash, "snapshot": found.store.snapshot.number, "files": files}
    return JSONResponse(body, headers={"cache-control": FOREVER})


@router.api_route(
    "/files/{snapshot}/{path:path}", methods=["GET", "HEAD"], tags=["files"], summary="A file", responses=PROBLEMS
)
async def file(request: Request, snapshot: str, path: str) -> Response:
    """The bytes of one file of the snapshot; Range is understood, ETag is the sha256."""
    found = _published(request, snapshot).files.get(path)
    if found is None:
        raise Problem("not-found", "no such file in this snapshot", f"one that /files/{snapshot}/ lists")
    headers = {
        "etag": f'"{found.sha256}"',
        "accept-ranges": "bytes",
        "cache-control": FOREVER,
        "content-disposition": f'attachment; filename="{path.rpartition("/")[2]}"',
    }
    if found.sha256 in request.headers.get("if-none-match", ""):
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
        return Response(status_code=status, headers=headers, media_type=kind)
    return StreamingResponse(_blocks(found, first, stop), status, headers, media_type=kind)


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


def _blocks(file: File, first: int, stop: int) -> Iterator[bytes]:
    # A link in the place of a file would hand over what lies outside of the store.
    opened = os.open(file.place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        while first < stop:
            block = os.pread(opened, min(_BLOCK, stop - first), first)
            if not block:
                raise OSError("the file is shorter than its manifest says")
            yield block
            first += len(block)
    finally:
        os.close(opened)
