"""This file stands between a client and a server, counts what goes through, and breaks what it is told to break."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

FAULTS = ("cut", "500", "503", "slow", "lost")
"""An answer cut after some bytes, two refusals before the server is asked, a late answer, and the answer that is lost
after the server did what it was asked for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came: its method, path with query, how it was broken, and what went back of the answer."""

    method: str
    path: str
    fault: str | None
    status: int
    sent: int


class FaultProxy:
    """A proxy on a free port in front of `behind`; `choose(method, path)` names a fault, or None, for each request."""

    def __init__(self, behind: str, choose: Callable[[str, str], str | None] = lambda method, path: None) -> None:
        self.choose, self.asked = choose, list[Asked]()
        self._behind = urlsplit(behind)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._client, "127.0.0.1", 0), self._loop)
        self._server = serving.result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def taken(self) -> list[Asked]:
        """What came since the last call."""
        found, self.asked = self.asked, []
        return found

    def stop(self) -> None:
        """Refuse every further connection."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, and the connection ends: so no fault of one reaches another."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            head, body = await _message(reader)
            method, path, _ = head.partition(b"\r\n")[0].decode().split(" ", 2)
            fault = self.choose(method, path)
            if fault in ("500", "503"):
                answer = f"HTTP/1.1 {fault} Fault\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
            else:
                answer = await self._ask(head, body, method)
            if fault == "slow":
                await asyncio.sleep(0.2)
            start = answer.find(b"\r\n\r\n") + 4
            if fault == "cut":
                answer = answer[: start + (len(answer) - start) // 2] if len(answer) > start else answer[: start // 2]
            elif fault == "lost":
                answer = b""
            status = int(answer[9:12]) if len(answer) >= 12 else 0
            self.asked.append(Asked(method, path, fault, status, max(len(answer) - start, 0)))
            writer.write(answer)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()

    async def _ask(self, head: bytes, body: bytes, method: str) -> bytes:
        """The whole answer of the server, which is told to end the connection after it."""
        reader, writer = await asyncio.open_connection(self._behind.hostname, self._behind.port)
        first, *lines = head.split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith((b"connection:", b"expect:"))]
        writer.write(b"\r\n".join([first, b"connection: close", *kept]) + b"\r\n\r\n" + body)
        await writer.drain()
        answer = await reader.read(-1)
        writer.close()
        # Interim answers are for the proxy.
        while answer.startswith(b"HTTP/1.1 100"):
            answer = answer.partition(b"\r\n\r\n")[2]
        top, _, rest = answer.partition(b"\r\n\r\n")
        return top + b"\r\nconnection: close\r\n\r\n" + rest


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n")
    sizes = [line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    return head, await reader.readexactly(int(sizes[0])) if sizes else b""


@contextmanager
def between(behind: str, choose: Callable[[str, str], str | None] = lambda method, path: None) -> Iterator[FaultProxy]:
    """A proxy in front of a server, for the block."""
    proxy = FaultProxy(behind, choose)
    try:
        yield proxy
    finally:
        proxy.stop()
