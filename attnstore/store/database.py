"""This file runs SQL over one store, or over two in one connection."""

import threading
from collections.abc import Mapping

import duckdb
import pyarrow as pa

from attnstore.errors import BadQuestion
from attnstore.store.joins import narrowed
from attnstore.store.layout import CELL_TYPES, Layout, Shown, Virtual, load, quoted
from attnstore.store.reached import Names, Reached
from attnstore.store.sql_errors import check_statement, stated, streamed, typed
from attnstore.store.walls import Config, Walls

_CONFIG: Config = {
    # Errors come with their kind and candidates as data, so that nothing is decided by the text of a message.
    "errors_as_json": True,
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}

_BATCH_ROWS = 2048


class Database:
    """One in-memory DuckDB over one snapshot, or two. Every call runs on a cursor of its own, so threads may share it.

    A store alone is laid out in the database itself: `words`, `stored.words`. Several, given by name, lie in
    catalogues of these names: `a.words`, `a.stored.words`.
    """

    def __init__(
        self, shown: Shown | Mapping[str, Shown], walls: Walls | None = None, threads: int | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._added: set[str] = set()
        own: Config = {} if threads is None else {"threads": threads}
        self._connection = duckdb.connect(":memory:", config=_CONFIG | own | (walls.config() if walls else {}))
        self._reached = Reached(self._connection.cursor())
        stores = {"": shown} if isinstance(shown, Shown) else shown
        if walls is not None:
            walls.give(
                self._connection, {name: file for one in stores.values() for name, file in one.files.named().items()}
            )
        self._layouts = [Layout(self._connection, self._reached, one, name) for name, one in stores.items()]
        if walls is not None:
            walls.close(self._connection)
        # Counted once: adding up the buffers of wide tables takes milliseconds.
        self.replaced_bytes = sum(table.nbytes for one in stores.values() for table in one.replaced.values())

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Put tables beside those of the stores. Before threads share it."""
        for name, table in tables.items():
            load(self._connection, f"memory.main.{quoted(name)}", table)
        self._added |= set(tables)

    @property
    def is_single(self) -> bool:
        """Whether it shows one store, whose tables need no catalogue before their names."""
        return not any(layout.catalogue for layout in self._layouts)

    def close(self) -> None:
        """Close the connection; queries that still run end with an error."""
        with self._lock:  # not while another thread copies tables on it
            for layout in self._layouts:
                layout.held.close()
            self._reached.close()
            self._connection.close()

    def run(
        self,
        text: str,
        params: Mapping[str, object] | None = None,
        *,
        doing: str = "running SQL",
        max_rows: int | None = None,
        max_bytes: int | None = None,
        is_shipped: bool = False,
    ) -> pa.Table:
        """The answer to one reading statement, or its first `max_rows` rows; of those no more than pass `max_bytes`.

        `is_shipped` says that it is the SELECT of a question that ships, which can stand in a bracket.
        NotFound for an unknown table, column or function, BadInput for parameters that do not fit, BadQuestion for
        other errors of the statement, NotStored for facts that were not kept, Damaged for a damaged file.
        """
        params = dict(params or {})
        check_statement(text, params, doing)
        names = self._reached.names(text)
        for layout in self._layouts:
            layout.check(_own(layout, names), doing)
        with self._lock:
            for layout in self._layouts:
                own = _own(layout, names)
                layout.provide(own, self._reached.defined(text) | self._added)
            cursor = self._connection.cursor()
        registered: list[Virtual] = []

        def answer(text: str, params: Mapping[str, object]) -> pa.Table:
            if max_rows is not None and is_shipped:
                # Bound and planned once: a relation is bound, and then planned anew to give its rows.
                return cursor.execute(f"from (\n{text}\n) limit {max_rows}", params).to_arrow_table()
            relation = cursor.sql(text, params=params)
            if relation is None:
                return pa.table({})
            relation = relation if max_rows is None else relation.limit(max_rows)
            return relation.to_arrow_table() if max_bytes is None else _first(relation, max_bytes)

        try:
            virtual: dict[str, Virtual] = {}
            for layout in self._layouts:
                virtual |= layout.virtual(_own(layout, names))
            for name, table in virtual.items():
                registered.append(table)
                cursor.register(name, table)
            if virtual and self.is_single and (smaller := narrowed(cursor, text, params, virtual)):
                registered += smaller[2].values()
                try:
                    return answer(*smaller[:2])
                except (duckdb.InterruptException, duckdb.OutOfMemoryException):
                    raise
                except duckdb.Error:
                    if any(table.failure is not None for table in registered):
                        raise
            return answer(text, params)
        except duckdb.Error as error:
            for table in registered:
                if table.failure is not None:
                    raise table.failure from None
            raise typed(stated(error, cursor, text, params), doing) from error
        except (RecursionError, pa.ArrowException) as error:
            raise BadQuestion(
                doing, "an answer nested too deep, or of a type that Arrow lacks", "plain columns"
            ) from error
        finally:
            cursor.close()

    def names(self, text: str) -> Names | None:
        """The tables that a statement reads, each with what qualifies it; None where that cannot be told."""
        return self._reached.names(text)


def _own(layout: Layout, names: Names | None) -> set[str] | None:
    """The names that mean tables of one store."""
    if names is None:
        return None
    return {name for qualifier, name in names if not layout.catalogue or qualifier == layout.catalogue}


def _first(relation: duckdb.DuckDBPyRelation, max_bytes: int) -> pa.Table:
    """The rows of an answer, read only until they pass so many bytes: memory of Arrow is none that DuckDB counts."""
    batches: list[pa.RecordBatch] = []
    with relation.to_arrow_reader(_BATCH_ROWS) as reader:
        try:
            for batch in reader:
                batches.append(batch)
                max_bytes -= batch.nbytes
                if max_bytes < 0:
                    break
        except OSError as error:  # what DuckDB says after the first rows comes through Arrow
            raise streamed(error) from None
        return pa.Table.from_batches(batches, reader.schema)


def column_types(database: Database) -> dict[str, dict[str, str]]:
    """The columns of each public table with their SQL types, by name."""
    text = """
        select
            if(table_catalog = 'memory', '', table_catalog || '.') || table_name as public_name, column_name, data_type
        from information_schema.columns
        where table_schema = 'main' and table_catalog not in ('system', 'temp')
        order by table_catalog = 'memory', table_catalog, table_name, ordinal_position
    """
    found: dict[str, dict[str, str]] = {}
    for row in database.run(text, doing="listing the tables").to_pylist():
        found.setdefault(row["public_name"], {})[row["column_name"]] = row["data_type"]
    if not database.is_single:
        return found
    # Registered for a query that names it, and so not among the views.
    found |= {name: dict(CELL_TYPES) for name in ("attention", "word_attention")}
    return dict(sorted(found.items()))
