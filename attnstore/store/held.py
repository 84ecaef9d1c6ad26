"""This file holds in memory, within a budget, what statements read more than once of the Parquet files of a store."""

import threading
import weakref
from contextlib import suppress

import duckdb

HELD_BYTES = 512 * 2**20
"""Bytes that all databases of one store may hold together, as tables take them when they are made."""

HELD_VIEWS = frozenset({"relations", "antecedents", "halves"})
"""Views whose answer is held as well: they join and sort annotation, and nothing of them depends on parameters."""

GROWTH = 4
"""Bytes that a table may need in memory for each byte of its files, before it is known."""

_CATALOGUE = "held"

_ROWS = 16_384
"""Rows of a row group, which one thread scans: by DuckDB's own 122,880 the words of 1,000 texts are one group."""


class Budget:
    """How much of the memory is taken. Threads may share it."""

    def __init__(self, limit: int = HELD_BYTES) -> None:
        self._left = limit
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Take so many bytes; False where fewer are left."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._left += size


class Share:
    """What one database took of a budget; it is given back once, also where the database is let go without closing."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self.taken = budget, 0

    def end(self) -> None:
        """Give everything back."""
        self._budget.give(self.taken)
        self.taken = 0


class Held:
    """The copies of one database, made when a table is used for the second time.

    One that is used once, as by a command that asks one question, is read from its files and costs no more. Decoding
    the lists over heads is most of what a question takes: 70 ms for 8.5 million numbers, against 5 ms from memory.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, budget: Budget) -> None:
        self._connection, self._budget, self._share = connection, budget, Share(budget)
        weakref.finalize(self, self._share.end)
        self._uses: dict[str, int] = {}
        self._there: set[str] = set()
        self._before: int | None = None  # bytes of other tables; None until the copies have a catalogue

    def __contains__(self, name: str) -> bool:
        return name in self._there

    def is_due(self, name: str) -> bool:
        """Count one more use; whether it is the second."""
        self._uses[name] = self._uses.get(name, 0) + 1
        return self._uses[name] == 2

    def hold(self, schema: str, name: str, size: int | None) -> bool:
        """Copy `schema.name`, a view, and let it show the copy; False where the budget does not allow it.

        `size` are the bytes that the copy may need; None where they are only known afterwards.
        """
        if not self._budget.take(size or 0):
            return False
        self._share.taken += size or 0  # until it is known what is needed
        try:
            return self._copied(schema, name, size or 0)
        except BaseException:  # such as an interruption: the next use tries again
            self._give(size or 0)
            self._uses[name] = 1
            raise

    def _copied(self, schema: str, name: str, size: int) -> bool:
        if self._before is None:
            self._before = self._in_memory()
            # Compressed, it takes half of the memory and less time than plain tables.
            self._connection.execute(f"attach ':memory:' as {_CATALOGUE} (compress, row_group_size {_ROWS})")
            self._connection.execute(f"create schema {_CATALOGUE}.stored")
        copy = f'{_CATALOGUE}.stored."{name}"'
        try:
            self._connection.execute(f'create or replace table {copy} as from {schema}."{name}"')
        except duckdb.Error:  # the statement that reads the table says what is wrong
            self._give(size)
            return False
        with suppress(duckdb.Error):  # while another thread writes, the copy stays uncompressed
            self._connection.execute(f"checkpoint {_CATALOGUE}")
        needed = max(self._in_memory() - self._before - self._share.taken + size, 0)
        self._give(size - needed)  # more than expected is taken too
        self._connection.execute(f'create or replace view {schema}."{name}" as from {copy}')
        self._there.add(name)
        return True

    def _give(self, size: int) -> None:
        self._budget.give(size)
        self._share.taken -= size

    def close(self) -> None:
        """Give the memory back, once, before the connection is closed."""
        self._share.end()

    def _in_memory(self) -> int:
        text = "select sum(memory_usage_bytes) from duckdb_memory() where tag = 'IN_MEMORY_TABLE'"
        row = self._connection.execute(text).fetchone()
        return int(row[0] or 0) if row else 0
