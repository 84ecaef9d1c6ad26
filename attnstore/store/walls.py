"""This file closes a database to the statements of strangers: a locked engine that reads the store's own files only.

DuckDB lets whoever may read a folder write into it too. So the files of a store are not read by their paths, but
through a file system that knows these files alone and opens them for reading; DuckDB's own is switched off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

SCHEME = "attn"

Config = dict[str, str | bool | int | float | list[str]]


@dataclass(frozen=True, slots=True)
class Walls:
    """What a database of strangers may take: seconds for a statement, bytes of memory, threads."""

    seconds: float
    memory_bytes: int
    threads: int

    def config(self) -> Config:
        """Settings that hold for every cursor only if the connection begins with them, and how many threads it starts.

        By default DuckDB starts eight more for reading, whose stacks take 70 MB of the addresses of a process.
        """
        return {"max_execution_time": max(round(self.seconds * 1000), 1), "threads": self.threads, "async_threads": 1}

    def give(self, connection: duckdb.DuckDBPyConnection, files: Mapping[str, Path]) -> None:
        """Let the connection read these files, by the names that `url` gives. Needs fsspec, of the extra `serve`."""
        from attnstore.store.file_layer import Files

        connection.register_filesystem(Files(files))

    def close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Leave nothing else to read, and settings that no statement changes any more."""
        for statement in (
            f"set memory_limit = '{self.memory_bytes // 2**20}MiB'",
            "set temp_directory = ''",
            "set max_temp_directory_size = '0KB'",
            f"set allowed_directories = ['{SCHEME}://']",
            "set enable_external_access = false",
            "set allowed_configs = []",
            "set lock_configuration = true",
        ):
            connection.execute(statement)


def url(content_hash: str, path: str) -> str:
    """How SQL names a file of the store whose snapshot has this content hash; `path` is relative to the store."""
    return f"{SCHEME}://{content_hash[:16]}/{path}"
