"""This file lays out one store in a catalogue of DuckDB: schema `stored` over its Parquet files, and the views."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.catalogue.catalogue import View
from attnstore.errors import NotStored
from attnstore.format.fact_tables import DECLARED
from attnstore.format.tables import ADDED
from attnstore.store.held import GROWTH, HELD_VIEWS, Held
from attnstore.store.manifest_tables import MANIFEST_TABLES, create_manifest_tables
from attnstore.store.parquet_files import FACT_TABLES, ParquetFiles
from attnstore.store.reached import Reached
from attnstore.store.sql_errors import typed

if TYPE_CHECKING:
    from attnstore.errors import AttnStoreError
    from attnstore.store.rectangles import Head

CELL_COLUMNS = pa.schema(
    [
        ("example", pa.int32()),
        ("kind", pa.string()),
        ("layer", pa.int16()),
        ("head", pa.int16()),
        ("query", pa.int32()),
        ("key", pa.int32()),
        ("weight", pa.float32()),
    ]
)
"""The columns of every virtual table: one row for each cell of a map."""

CELL_TYPES = dict(
    zip(CELL_COLUMNS.names, ("INTEGER", "VARCHAR", "SMALLINT", "SMALLINT", "INTEGER", "INTEGER", "FLOAT"), strict=True)
)
"""The same in SQL."""


class Virtual(Protocol):
    """A table that is computed while it is scanned. `failure` is what went wrong in the last scan."""

    failure: "AttnStoreError | None"

    @property
    def heads(self) -> "tuple[Head, ...]":
        """The heads that it has rows of."""
        ...

    @property
    def n_maps(self) -> int:
        """Heads times examples."""
        ...

    def only(self, heads: "frozenset[Head] | None", examples: NDArray[np.int64] | None) -> "Virtual":
        """The same table without the rows of other heads and examples than these; None for no limit."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """What a database shows of one store.

    `virtual` makes the tables that are computed while they are scanned, anew for each call; `replaced` stands in for
    stored tables; `examples`, where given, are the only ones that the tables show. `walled` databases name files as
    `ParquetFiles.urls` does.
    """

    files: ParquetFiles
    views: Sequence[View]
    virtual: Mapping[str, Callable[[], Virtual]]
    replaced: Mapping[str, pa.Table] = field(default_factory=dict)
    examples: NDArray[np.int64] | None = None
    walled: bool = False


class Layout:
    """One store in a catalogue: that of the connection itself where `catalogue` is empty, else one of that name."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, reached: Reached, shown: Shown, catalogue: str = ""
    ) -> None:
        self.shown, self.files, self.catalogue = shown, shown.files, catalogue
        self._connection, self._parser = connection, reached
        if catalogue:
            connection.execute(f"attach ':memory:' as {quoted(catalogue)}")
            connection.execute(f"use {quoted(catalogue)}")
        connection.execute("create schema stored")
        if shown.examples is not None:
            load(connection, "stored.chosen", pa.table({"example": shown.examples.astype(np.int32)}))
        self._views = {view.name: view.sql for view in shown.views}
        self._reaches: dict[str, frozenset[str]] = {}
        self._there: set[str] = set()
        self.held = Held(connection, self.files.budget)
        create_manifest_tables(connection, self.files.contents)
        for name, table in shown.replaced.items():
            load(connection, f"stored.{quoted(name)}", table)
        if catalogue:
            self._provide_all()
            self._view_virtual()
            connection.execute("use memory")

    def check(self, names: Iterable[str] | None, doing: str) -> None:
        """Read every file that these tables and views reach and that was not used before; None stands for all.

        NotStored for a fact table that the store does not hold, Damaged for a file that is not as recorded.
        """
        needed = set(self.files.sources) if names is None else set[str]()
        for name in names or ():
            needed |= self._reached(name)
        needed -= set(self.shown.replaced)
        if names is not None:
            for table in sorted(needed & set(FACT_TABLES)):
                if self.files.parameters(table) is None:
                    raise facts_not_kept(table, doing)
        self.files.check(sorted(needed))

    def virtual(self, names: Iterable[str] | None) -> dict[str, Virtual]:
        """New virtual tables, of those named or all for None, by the name under which a cursor has to know them."""
        wanted = self.shown.virtual if names is None else {*names} & set(self.shown.virtual)
        return {self._registered(name): self.shown.virtual[name]() for name in sorted(wanted)}

    def _registered(self, name: str) -> str:
        # A cursor registers tables in its own temporary schema only, which two stores share.
        return f"{self.catalogue}_{name}" if self.catalogue else name

    def _view_virtual(self) -> None:
        for name in self.shown.virtual:
            registered = self._registered(name)
            self._connection.register(registered, CELL_COLUMNS.empty_table())
            self._connection.execute(f"create view main.{quoted(name)} as from temp.main.{quoted(registered)}")
            self._connection.unregister(registered)

    def _reached(self, name: str) -> frozenset[str]:
        """The stored tables behind a table or view; found out when one is first used, as most never are."""
        if name not in self._views:
            return frozenset({name} & set(self.files.sources))
        if name not in self._reaches:
            below = self._parser.names(self._views[name])
            every = frozenset(self.files.sources)
            # A view may have the name of the stored table that it shows.
            inner = (
                ()
                if below is None
                else (({item} & every) if item == name else self._reached(item) for _, item in below)
            )
            self._reaches[name] = every if below is None else frozenset().union(*inner)
        return self._reaches[name]

    def provide(self, names: Iterable[str] | None, others: Set[str]) -> None:
        """Create the tables and views of these names, and what they read; all for None, or where one is unknown.

        `others` are names that may mean something else: a table of the statement's own, or one beside the stores.
        Creating a view costs a millisecond, a statement names few of them, and most stores are asked little.
        """
        known = {*self.files.sources, *self._views, *self.shown.virtual, *MANIFEST_TABLES}
        if names is None or set(names) - known - others:
            self._provide_all()
            return
        for name in sorted(set(names) & known):
            self._provide(name)
        if not self.catalogue:
            self._hold(set(names) & known, set())

    def _hold(self, names: Iterable[str], seen: set[str]) -> None:
        """Keep in memory what these tables and views read for the second time."""
        for name in sorted(set(names) - seen):
            seen.add(name)
            if name in HELD_VIEWS:
                if name not in self.held and self.held.is_due(name):
                    self.held.hold("main", name, None)
                if name in self.held:
                    continue  # what it reads is not read any more
            if name in self.files.sources and name not in self.shown.replaced:
                size = GROWTH * sum(file.bytes for _, file in self.files.sources[name])
                if size and name not in self.held and self.held.is_due(name):
                    self.held.hold("stored", name, size)
            if name in self._views:
                below = self._parser.names(self._views[name])
                self._hold((item for _, item in below or ()), seen)

    def _provide_all(self) -> None:
        for name in (*self.files.sources, *self._views):
            self._provide(name)

    def _provide(self, name: str) -> None:
        if name in self._there:
            return
        self._there.add(name)
        try:
            if name in self.files.sources and name not in self.shown.replaced:
                self._connection.execute(f"create or replace view stored.{quoted(name)} as {self._stored(name)}")
            if name in self._views:
                below = self._parser.names(self._views[name])
                for item in self.files.sources if below is None else sorted(item for _, item in below):
                    self._provide(item)
                self._connection.execute(f"create or replace view main.{quoted(name)} as {self._views[name]}")
        except BaseException as error:  # an interruption too leaves it to the next use
            self._there.discard(name)
            if not isinstance(error, duckdb.Error):
                raise
            self.files.check([name])  # a file that DuckDB cannot open is most likely a damaged one
            raise typed(error, f"creating the view {name}") from error

    def _stored(self, name: str) -> str:
        files = (
            self.files.urls(name) if self.shown.walled else [str(path.absolute()) for path in self.files.paths(name)]
        )
        if not files:
            return f"select {', '.join(map(_null, DECLARED[name]))} where false"
        # Without it a folder named split=dev would add a column.
        read = f"from read_parquet([{', '.join(map(_literal, files))}], hive_partitioning = false)"
        if added := ADDED.get(name):  # older stores lack these columns
            nulls = (
                f"cast(null as {_sql_type(DECLARED[name].field(column).type)}) as {quoted(column)}" for column in added
            )
            read = f"from ({read} union all by name select {', '.join(nulls)} where false)"
        narrowed = self.shown.examples is not None and name in DECLARED and "example" in DECLARED[name].names
        return f"{read} where example in (from stored.chosen)" if narrowed else read


def load(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Create a table, by its name in SQL, that holds these rows."""
    connection.register("loading", table.cast(pa.schema(map(_without_halves, table.schema))))
    connection.execute(f"create table {name} as from loading")
    connection.unregister("loading")


def facts_not_kept(table: str, doing: str) -> NotStored:
    """The error for a fact table that the store was told not to keep."""
    return NotStored(
        doing,
        f"this store kept no {table}",
        "facts that were computed when the maps were stored",
        'Ask a shipped question, which computes them from the maps, or ingest with [keep] facts = "standard"',
    )


def quoted(name: str) -> str:
    """The name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _literal(file: str) -> str:
    # DuckDB expands *, ? and [ in file names; in brackets they stand for themselves.
    plain = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in file)
    return "'" + plain.replace("'", "''") + "'"


def _null(field: pa.Field) -> str:
    return f"cast(null as {_sql_type(field.type)}) as {quoted(field.name)}"


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    return _SQL_TYPES[str(kind)]


def _without_halves(field: pa.Field) -> pa.Field:
    # DuckDB reads float16 from Parquet and refuses it from Arrow.
    if pa.types.is_list(field.type):
        return pa.field(field.name, pa.list_(_without_halves(field.type.value_field)))
    return pa.field(field.name, pa.float32()) if pa.types.is_float16(field.type) else field


_SQL_TYPES: dict[str, str] = {
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "string": "varchar",
    "bool": "boolean",
    "halffloat": "float",
    "float": "float",
    "double": "double",
}
