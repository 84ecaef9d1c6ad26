"""This file says where the bytes of shards come from: a folder of this machine, or an address."""

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from attnstore.errors import Damaged
from attnstore.format.regular import opened
from attnstore.format.remote import REQUESTS, Remote

GAP = 32 * 2**10
"""Bytes that are fetched in vain rather than by one more request."""

SPAN = 8 * 2**20
"""A request asks for no more, so that several share a large read."""

_REMEDY = "Fetch the store again, or run: attnstore verify"

Wanted = tuple["Shard", int, int]
"""A shard, and the size and offset of what will be read of it."""


class Shard(Protocol):
    """One shard that is open; `path` is its name in errors."""

    path: str

    def size(self) -> int:
        """Bytes of the shard."""
        ...

    def read(self, size: int, offset: int) -> Any:
        """`size` bytes from `offset` on, or fewer where it ends."""
        ...

    def ahead(self, spans: Sequence[tuple[int, int]]) -> None:
        """Say what will be read, (offset, size) each."""
        ...

    def close(self) -> None:
        """Let it go."""
        ...


class Source(Protocol):
    """Where the shards of an array lie."""

    def open(self, name: str) -> Shard:
        """A shard by its name, such as c/0/0/0; Damaged where there is none."""
        ...


class Folder:
    """The shards in a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def open(self, name: str) -> "LocalShard":
        """A shard by its name; Damaged where there is none."""
        return LocalShard(f"{self._folder}/{name}")


class LocalShard:
    """An open file: a regular one, no link."""

    __slots__ = ("_file", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = opened(path, "a shard of the maps")

    def size(self) -> int:
        """Bytes of the shard."""
        return os.fstat(self._file).st_size

    def read(self, size: int, offset: int) -> bytes:
        """`size` bytes from `offset` on, or fewer where it ends."""
        return os.pread(self._file, size, offset)

    def ahead(self, spans: Sequence[tuple[int, int]]) -> None:
        """Nothing: the system reads ahead."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Address:
    """The shards below an address; `sizes` is what the manifest says of each, by name."""

    def __init__(self, folder: Remote, sizes: Mapping[str, int]) -> None:
        self._folder, self._sizes = folder, sizes

    def open(self, name: str) -> "RemoteShard":
        """A shard by its name; Damaged where the manifest lists none."""
        place = self._folder / name
        if name not in self._sizes:
            raise Damaged(f"reading {place}", "no manifest lists it", "a shard of the maps", _REMEDY)
        return RemoteShard(place, self._sizes[name])


class RemoteShard:
    """A shard that is read by ranges. What was asked for ahead comes in a few requests beside one another."""

    __slots__ = ("_place", "_size", "_starts", "_under_way", "path")

    def __init__(self, place: Remote, size: int) -> None:
        self._place, self._size, self.path = place, size, str(place)
        self._starts: list[int] = []
        self._under_way: list[Future[memoryview]] = []

    def size(self) -> int:
        """Bytes of the shard, as the manifest says."""
        return self._size

    def ahead(self, spans: Sequence[tuple[int, int]]) -> None:
        """Ask for these spans, neighbours together."""
        joined = joined_spans(spans)
        self._starts = [start for start, _ in joined]
        self._under_way = [_requests.submit(self._place.read_range, *span) for span in joined]

    def read(self, size: int, offset: int) -> memoryview:
        """`size` bytes from `offset` on. Damaged where there are fewer, NotFound where the server does not answer."""
        at = bisect_right(self._starts, offset) - 1
        first = offset - self._starts[at] if at >= 0 else 0
        data = self._under_way[at].result() if at >= 0 else memoryview(b"")
        if first + size <= len(data):
            return data[first : first + size]
        return self._place.read_range(offset, offset + size)

    def close(self) -> None:
        """Drop what was not read."""
        for request in self._under_way:
            request.cancel()
        self._starts, self._under_way = [], []


def joined_spans(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans (offset, size) as (start, stop), exclusive: in order, those that lie close together in one."""
    joined: list[tuple[int, int]] = []
    for offset, size in sorted(spans):
        stop = offset + size
        if joined and offset - joined[-1][1] <= GAP and stop - joined[-1][0] <= SPAN:
            joined[-1] = (joined[-1][0], max(joined[-1][1], stop))
        else:
            joined.append((offset, stop))
    return joined


class _Requests:
    """Threads that wait for answers, of all arrays of a process; others decode. Made by the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def submit(self, read: Callable[[int, int], memoryview], start: int, stop: int) -> Future[memoryview]:
        """Ask for these bytes, beside what else is under way."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(REQUESTS, "attnstore-fetch")
            return self._pool.submit(read, start, stop)


_requests = _Requests()


def _again() -> None:
    global _requests
    _requests = _Requests()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_again)  # a forked process has the pool without its threads
