"""This file is the file system of a database behind walls: the files of its stores, for reading, and no others."""

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractFileSystem

from attnstore.store.walls import SCHEME


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

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            raise PermissionError("a store is only read")
        return self._place(path).open("rb")

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """The size of a file."""
        return {"name": path, "size": self._place(path).stat().st_size, "type": "file"}

    def exists(self, path: str, **options: Any) -> bool:
        """Whether it is one of the files."""
        return str(self._strip_protocol(path)) in self._places

    def glob(self, path: str, **options: Any) -> list[str]:
        """The file of that name; patterns stand for themselves."""
        return [path] if self.exists(path) else []

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """Nothing: there are no folders."""
        return []

    def modified(self, path: str) -> datetime.datetime:
        """Always the same time, since a store's files never change."""
        return datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
