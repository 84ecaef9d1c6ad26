"""This file opens a package in place: one uncompressed zip file that holds a store, read by ranges.

What a stranger put into a zip file is checked when it is opened, before a byte of the store is read.
"""

import copy
import os
import stat
import struct
import threading
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnstore.errors import Damaged, NotAStore
from attnstore.format.remote import Remote

MOST_FILES, DIRECTORY_BYTES = 2**20, 2**27
"""A package names no more files, in a directory of no more bytes; another one is refused unread."""

_LOCAL, _LOCAL_BYTES = b"PK\x03\x04", 30
_END, _END_BYTES, _LONGEST_COMMENT = b"PK\x05\x06", 22, 2**16
_END64, _END64_BYTES, _LOCATOR, _LOCATOR_BYTES = b"PK\x06\x06", 56, b"PK\x06\x07", 20
_BLOCK = 2**20
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_REMEDY = "Make one with: attnstore pack"


def is_package(place: str | Path) -> bool:
    """Whether a regular file lies there that begins as a zip file does, or is named like one."""
    path = Path(place)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            return False
        with path.open("rb") as file:
            return path.suffix.lower() == ".zip" or file.read(len(_LOCAL)) == _LOCAL
    except OSError:
        return False


def packed(path: Path) -> Remote:
    """The place of the store in a zip file. NotAStore where it holds none, Damaged for one that may not be read."""
    package = Package(path)
    if "store.json" not in package.files:
        raise NotAStore(f"opening {path}", "a zip file without store.json at its top", "a packed store", _REMEDY)
    return Remote(str(path), package, listing=package.names)


class Package:
    """The files in a zip file, by name, with the methods of `Reading`. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise NotAStore(f"opening {path}", error.strerror or str(error), "a packed store") from error
        self.close = weakref.finalize(self, os.close, self._file)
        self.files: Mapping[str, zipfile.ZipInfo] = _checked(path, self._file)
        self._starts: dict[str, int] = {}
        self._folders: dict[str, list[str]] = {}
        for name in self.files:
            folder, _, own = name.rpartition("/")
            self._folders.setdefault(folder, []).append(own)
        self._lock = threading.Lock()

    def names(self, folder: str) -> Sequence[str]:
        """Names of the files in a folder; those of folders in it are not told."""
        return self._folders.get(folder, ())

    def whole(self, path: str, most: int, doing: str) -> bytes:
        """See `Reading`."""
        size = self._entry(path).file_size
        if size > most:
            raise Damaged(doing, f"{size} bytes", f"{most} at most")
        return bytes(self.span(path, 0, size))

    def span(self, path: str, start: int, stop: int) -> memoryview:
        """See `Reading`."""
        first, size = self._start(path), self._entry(path).file_size
        return memoryview(os.pread(self._file, max(min(stop, size) - start, 0), first + start))

    def blocks(self, path: str) -> Iterator[memoryview]:
        """See `Reading`."""
        size = self._entry(path).file_size
        for start in range(0, size, _BLOCK):
            yield self.span(path, start, min(start + _BLOCK, size))

    def for_zarr(self) -> Any:
        """See `Reading`."""
        from zarr.storage import ZipStore

        # A copy is open, as one that comes out of a pickle is; the first one opens only where arrays are opened by it.
        return copy.copy(ZipStore(self.path, mode="r"))

    def _entry(self, path: str) -> zipfile.ZipInfo:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def _start(self, path: str) -> int:
        """Where the bytes of a file begin, which only the header before them tells."""
        with self._lock:
            if path not in self._starts:
                at, name = self._entry(path).header_offset, path.encode()
                head = os.pread(self._file, _LOCAL_BYTES + len(name), at)
                known = len(head) == _LOCAL_BYTES + len(name) and head[:4] == _LOCAL and head[_LOCAL_BYTES:] == name
                named, extra = struct.unpack_from("<HH", head, 26) if known else (0, 0)
                start = at + _LOCAL_BYTES + named + extra
                if named != len(name) or start + self.files[path].file_size > os.fstat(self._file).st_size:
                    doing, expected = f"reading {self.path}", "the file that the zip file's directory names"
                    raise Damaged(doing, f"another file at the place of {path}", expected, "Fetch the file again")
                self._starts[path] = start
            return self._starts[path]


def _checked(path: Path, file: int) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip file by name; Damaged for any that could not be meant well."""
    doing = f"opening {path}"
    files, n_bytes = _directory(file)
    if files > MOST_FILES or n_bytes > DIRECTORY_BYTES:
        raise Damaged(doing, f"{files} files in it, named in {n_bytes} bytes", f"{MOST_FILES} and {DIRECTORY_BYTES}")
    try:
        with zipfile.ZipFile(path) as opened:
            entries = opened.infolist()
            end = opened.start_dir
    except (zipfile.BadZipFile, ValueError, OverflowError, struct.error, NotImplementedError, EOFError) as error:
        raise Damaged(doing, f"no whole zip file ({error})", "a packed store", "Fetch the file again") from error
    found: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        if problem := _problem(entry):
            raise Damaged(doing, f"{entry.orig_filename[:200]!r} in it {problem}", "a packed store", _REMEDY)
        if entry.filename in found:
            raise Damaged(doing, f"{entry.filename!r} is in it twice", "a packed store", _REMEDY)
        if not entry.is_dir():
            found[entry.filename] = entry
    ordered = sorted(found.values(), key=lambda entry: entry.header_offset)
    ends = [*(entry.header_offset for entry in ordered[1:]), end]
    for entry, stop in zip(ordered, ends, strict=True):
        # Many names for the same bytes make little into much.
        if entry.header_offset < 0 or entry.header_offset + _LOCAL_BYTES + entry.file_size > stop:
            raise Damaged(doing, f"{entry.filename!r} in it overlaps what follows", "a packed store", _REMEDY)
    return found


def _problem(entry: zipfile.ZipInfo) -> str:
    """Why a file in a zip file cannot be part of a store; empty where it can."""
    name, mode = entry.orig_filename, entry.external_attr >> 16
    parts = name.removesuffix("/").split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\\" in name or any(ord(letter) < 32 for letter in name):
        return "has a name that leads elsewhere"
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        return "is compressed, so that it cannot be read in place"
    if stat.S_IFMT(mode) not in (0, stat.S_IFDIR if entry.is_dir() else stat.S_IFREG):
        return "is a link or another thing that is no file"
    return ""


def _directory(file: int) -> tuple[int, int]:
    """How many files, and how many bytes of their names, the end of a zip file claims; zeros where there is no end.

    Looked for where `zipfile` looks, which reads a directory of any size into memory.
    """
    size = os.fstat(file).st_size
    first = max(0, size - _END_BYTES - _LONGEST_COMMENT)
    tail = os.pread(file, size - first, first)
    plain = len(tail) - _END_BYTES
    at = plain if tail[plain : plain + 4] == _END and tail.endswith(b"\0\0") else tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_BYTES:
        return 0, 0
    files, n_bytes = struct.unpack_from("<HI", tail, at + 10)
    before = first + at - _LOCATOR_BYTES
    locator = os.pread(file, _LOCATOR_BYTES, before) if before >= 0 else b""
    if locator[:4] == _LOCATOR and len(locator) == _LOCATOR_BYTES:
        # Some look where the locator says, some just before it.
        for place in (struct.unpack_from("<Q", locator, 8)[0], before - _END64_BYTES):
            end = os.pread(file, _END64_BYTES, place) if 0 <= place < size else b""
            if len(end) == _END64_BYTES and end[:4] == _END64:
                files, n_bytes = map(max, (files, n_bytes), struct.unpack_from("<QQ", end, 32))
    return files, n_bytes
