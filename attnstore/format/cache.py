"""This file keeps files that were fetched, by their sha256, for all processes of a user and all stores.

A file is written under another name and renamed: it is there whole or not at all, and who comes second replaces it by
an equal one. What was not used for the longest time is dropped when there is more than `ATTNSTORE_CACHE_BYTES`.
"""

import contextlib
import os
import secrets
import sys
import threading
import time
from pathlib import Path

from attnstore.errors import BadInput, NoSpace
from attnstore.format.json_text import checked_sha256
from attnstore.format.manifest import File
from attnstore.format.remote import Remote

FOLDER, BYTES = "ATTNSTORE_CACHE", "ATTNSTORE_CACHE_BYTES"
"""The variables that say where fetched files are kept, and how many bytes of them."""

MOST_BYTES = 16 * 2**30

STAGED_SECONDS = 3600
"""A file under its first name that was not written to for so long has nobody left who writes it."""


class Cache:
    """The fetched files in a folder. Threads and processes may share it."""

    def __init__(self, folder: Path | None = None, most_bytes: int | None = None) -> None:
        self.folder = folder or _folder()
        self.most_bytes = _most_bytes() if most_bytes is None else most_bytes
        self._used: set[Path] = set()
        self._unseen = self.most_bytes  # bytes fetched since the folder was last measured
        self._lock = threading.Lock()

    def path(self, file: File) -> Path:
        """Where the file lies once it was fetched. ValueError for a sha256 that is none, which could lead elsewhere."""
        name, ending = checked_sha256(file.sha256), Path(file.path).suffix
        return self.folder / name[:2] / f"{name}{ending}"

    def fetch(self, source: Remote, file: File, *, anew: bool = False) -> bool:
        """See to it that the file is there; whether it had to be fetched. `anew` fetches it in any case.

        Damaged where the source has other bytes, NotFound where it does not answer, NoSpace where they cannot be kept.
        """
        path = self.path(file)
        with self._lock:
            self._used.add(path)
        if not anew:
            with contextlib.suppress(OSError):
                if path.stat().st_size == file.bytes:
                    os.utime(path)  # the time of its last use
                    return False
        staging = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with staging.open("xb") as opened:
                source.copy_to(opened, file.bytes, file.sha256)
            staging.replace(path)
        except OSError as error:
            remedy = f"Set {FOLDER} to a folder with room"
            raise NoSpace(f"keeping {source} in {self.folder}", error.strerror or str(error), "", remedy) from error
        finally:
            with contextlib.suppress(OSError):
                staging.unlink()
        with self._lock:
            self._unseen += file.bytes
            is_due = self._unseen > self.most_bytes / 64
            self._unseen = 0 if is_due else self._unseen
        if is_due:  # not for each of a thousand small files
            self._make_room()
        return True

    def _make_room(self) -> None:
        """Drop files, the longest unused first, but none that this process has used or another may be writing."""
        found, total, written_since = [], 0, time.time() - STAGED_SECONDS
        for path in self.folder.glob("??/*"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                if not path.name.startswith(".") or stat.st_mtime < written_since:
                    found.append((stat.st_mtime, stat.st_size, path))
                total += stat.st_size
        if total <= self.most_bytes:
            return
        for _, size, path in sorted(found):
            with self._lock:
                is_used = path in self._used
            if total > self.most_bytes and not is_used:
                with contextlib.suppress(OSError):
                    path.unlink()
                    total -= size


def _folder() -> Path:
    if given := os.environ.get(FOLDER):
        return Path(given)
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "attnstore" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "attnstore"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "attnstore"


def _most_bytes() -> int:
    text = os.environ.get(BYTES)
    if text is None:
        return MOST_BYTES
    if not text.isdecimal():
        raise BadInput(f"reading the variable {BYTES}", repr(text), "a number of bytes")
    return int(text)
