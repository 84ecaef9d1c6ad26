"""This file lets processes share tables that one of them computed: files in a folder that none of them changes."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

Table = tuple[str, tuple[tuple[str, object], ...]]
"""A computed table, with its parameters."""


class Prepared:
    """The computed tables of one snapshot over all of its examples, each an Arrow file in `folder`."""

    def __init__(self, folder: Path, content_hash: str) -> None:
        self._folder, self._content_hash = folder, content_hash

    def find(self, *tables: Table) -> pa.Table | None:
        """The first of the tables, which was made of the others; None where it is not there yet.

        It stays in its file until it is read.
        """
        try:
            return pa.ipc.open_file(pa.memory_map(str(self._path(tables)))).read_all()
        except FileNotFoundError:
            return None

    def write(self, tables: Sequence[Table], schema: pa.Schema, parts: Iterable[pa.Table]) -> int:
        """Keep a table that comes in parts, and show it when it is whole; its bytes."""
        path = self._path(tables)
        unfinished = path.with_name(uuid4().hex)
        try:
            with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, schema) as writer:
                for part in parts:
                    writer.write_table(part)
            size = unfinished.stat().st_size
            unfinished.rename(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return size

    def _path(self, tables: Sequence[Table]) -> Path:
        told = json.dumps([self._content_hash, *tables], default=str)
        return self._folder / f"{tables[0][0]}-{hashlib.sha256(told.encode()).hexdigest()[:32]}.arrow"
