"""This file holds files against what their manifest says of them, before their first use.

The checksum of a chunk covers its bytes, not where it belongs: a shard in the place of another decodes. So the checksum
of a shard's index is compared, whose bytes are read anyway, and of all of the shard where that does not tell it apart.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import google_crc32c

from attnstore.errors import Damaged
from attnstore.format.manifest import FETCH, File, Unit
from attnstore.format.regular import opened

_BLOCK = 2**20


def check_file(path: str | Path, file: File) -> None:
    """Read all of a file on this machine; Damaged unless it has the size and the crc32c that its manifest states."""
    crc = size = 0
    doing = f"reading {path}"
    try:
        with os.fdopen(opened(path), "rb") as found:
            while block := found.read(_BLOCK):
                crc = google_crc32c.extend(crc, block)
                size += len(block)
    except OSError as error:
        raise Damaged(doing, str(error.strerror), f"a file of {file.bytes} bytes", FETCH) from error
    if size != file.bytes:
        raise Damaged(doing, f"{size} bytes", f"{file.bytes} bytes", FETCH)
    if f"{crc:08x}" != file.crc32c:
        raise Damaged(doing, f"crc32c {crc:08x}", f"crc32c {file.crc32c}", FETCH)


def alike(units: Iterable[Unit]) -> set[tuple[int, str]]:
    """Sizes and checksums of indexes that several shards of a store share: those do not tell a shard from another."""
    seen = Counter((f.bytes, f.index_crc32c) for unit in units for f in unit.files if f.index_crc32c is not None)
    return {(size, str(index)) for (size, index), times in seen.items() if times > 1}


class ShardChecks:
    """The shards of one array as the manifest lists them, by their paths in errors. Threads may share it."""

    def __init__(self, listed: Mapping[str, File], alike: set[tuple[int, str]], *, local: bool) -> None:
        self._listed, self._alike, self._local = listed, alike, local
        self._checked: set[str] = set()
        self._lock = threading.Lock()

    def lists(self, path: str) -> bool:
        """Whether the manifest lists a shard at `path`."""
        return path in self._listed

    def check(self, path: str, index_crc32c: int | None) -> None:
        """Damaged unless this is the shard that belongs at `path`; `index_crc32c` None where its index was not read.

        Behind an address only the index is looked at: all of a shard would have to be fetched.
        """
        if path in self._checked:
            return
        doing, file = f"reading {path}", self._listed.get(path)
        if file is None:
            raise Damaged(doing, "no manifest lists it", "a shard of the maps", FETCH)
        pinned = file.index_crc32c
        if pinned is not None and index_crc32c is not None and f"{index_crc32c:08x}" != pinned:
            raise Damaged(doing, f"an index with crc32c {index_crc32c:08x}", f"crc32c {pinned}", FETCH)
        is_known = pinned is not None and index_crc32c is not None and (file.bytes, pinned) not in self._alike
        if self._local and not is_known:
            check_file(path, file)
        with self._lock:
            self._checked.add(path)
