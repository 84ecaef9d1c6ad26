"""This file is the file system of a database behind walls: the files of its stores, for reading, and no others."""

import datetime
import io
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractFileSystem

from attnstore.store.walls import SCHEME


class Opened(io.RawIOBase):
    """A file that several threads read at once, each from where it stands itself.

    DuckDB goes to a place and reads there in two steps, and several of its threads share one open file, also where
    queries run on one: with a position in common they got each other's bytes.
    """

    def __init__(self, place: Path) -> None:
        super().__init__()
        self._file = os.open(place, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._size = os.fstat(self._file).st_size
        self._at = threading.local()

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where this thread reads next."""
        return int(getattr(self._at, "position", 0))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to another place, for this thread."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        self._at.position = max(start + offset, 0)
        return self.tell()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from there; the bytes read."""
        view, position, done = memoryview(buffer).cast("B"), self.tell(), 0
        while done < len(view) and (data := os.pread(self._file, len(view) - done, position + done)):
            view[done : done + len(data)] = data
            done += len(data)
        self._at.position = position + done
        return done

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            os.close(self._file)
        super().close()


class Files(AbstractFileSystem):  # type: ignore[misc]
    """Files by their names `attn://…`: there are no others, no folders, and nothing is ever written."""

    protocol = SCHEME
    cachable = False  # fsspec would hand one set of files to every store

    def __init__(self, places: Mapping[str, Path]) -> None:
        super().__init__()
        self._places = {name.removeprefix(f"{SCHEME}://"): place for name, place in places.items()}

    def _place(self, path: str) -> Path:
        try:
            return self._places[str(self._strip_protocol(path))]
        except KeyError:
            raise FileNotFoundError("there is no such file in the store") from None

    def _open(self, path: str, mode: str = "rb", *args: Any, **options: Any) -> Any:
        if mode != "rb":
            raise PermissionError("a store is only read")
        return Opened(self._place(path))

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """The size of a file."""
        return {"name": path, "size": self._place(path).stat().st_size, "type": "file"}

    def exists(self, path: str, **options: Any) -> bool:
        """Whether it is one of the files."""
        return str(self._strip_protocol(path)) in self._places

    def glob(self, path: str, maxdepth: int | None = None, **options: Any) -> list[str]:
        """The file of that name; patterns stand for themselves."""
        return [path] if self.exists(path) else []

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """Nothing: there are no folders."""
        return []

    def modified(self, path: str) -> datetime.datetime:
        """Always the same time, since a store's files never change."""
        return datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
