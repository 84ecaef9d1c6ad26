"""This file is how the server and its workers speak: a JSON head and raw bytes, each with its length before it.

Nothing that a worker sends is unpickled: a statement that broke out of DuckDB would otherwise reach the server.
"""

import asyncio
import json
import struct
from typing import Any, BinaryIO

_LENGTHS = struct.Struct("<IQ")
MOST_HEAD = 16 * 2**20
MOST_BODY = 2**30

Head = dict[str, Any]


class Gone(Exception):
    """The other end closed the pipe, or sent what is no message."""


def packed(head: Head, body: bytes = b"") -> bytes:
    """A message as bytes."""
    text = json.dumps(head, ensure_ascii=False).encode(errors="surrogatepass")  # what is no text, the gate refuses
    return _LENGTHS.pack(len(text), len(body)) + text + body


def receive(pipe: BinaryIO) -> tuple[Head, bytes]:
    """The next message of a pipe; Gone at its end."""
    head, body = _lengths(_exactly(pipe, _LENGTHS.size))
    return _parsed(_exactly(pipe, head)), _exactly(pipe, body)


def send(pipe: BinaryIO, head: Head, body: bytes = b"") -> None:
    """Write a message whole; Gone where nobody reads."""
    try:
        pipe.write(packed(head, body))
        pipe.flush()
    except OSError as error:
        raise Gone from error


async def take(reader: asyncio.StreamReader) -> tuple[Head, bytes]:
    """The next message of a stream; Gone at its end."""
    try:
        head, body = _lengths(await reader.readexactly(_LENGTHS.size))
        return _parsed(await reader.readexactly(head)), await reader.readexactly(body)
    except (asyncio.IncompleteReadError, OSError) as error:
        raise Gone from error


def _lengths(data: bytes) -> tuple[int, int]:
    head, body = _LENGTHS.unpack(data)
    if head > MOST_HEAD or body > MOST_BODY:
        raise Gone
    return head, body


def _parsed(text: bytes) -> Head:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Gone from error
    if not isinstance(head, dict):
        raise Gone
    return head


def _exactly(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if data is None or len(data) != size:
        raise Gone
    return data
