"""This file lays the tables of a store out in DuckDB: schema `stored` over the Parquet files, and the public views."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb
import pyarrow as pa

from attnstore.catalogue.catalogue import View
from attnstore.errors import BadInput, BadQuestion, NotFound, NotStored
from attnstore.format.names import KINDS
from attnstore.format.tables import TABLES
from attnstore.store.parquet_files import FACT_TABLES, ParquetFiles
from attnstore.store.reached import Reached

if TYPE_CHECKING:
    from attnstore.errors import AttnStoreError

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    # Errors come with their kind and candidates as data, so that nothing is decided by the text of a message.
    "errors_as_json": True,
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}
_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI, duckdb.StatementType.EXPLAIN)


class Virtual(Protocol):
    """A table that is computed while it is scanned. `failure` is what went wrong in the last scan."""

    failure: "AttnStoreError | None"


class Database:
    """One in-memory DuckDB over one snapshot. Every call runs on a cursor of its own, so threads may share it.

    `virtual` makes the registered tables anew for each call; `replaced` stands in for stored tables.
    """

    def __init__(
        self,
        files: ParquetFiles,
        views: Sequence[View],
        virtual: Mapping[str, Callable[[], Virtual]],
        replaced: Mapping[str, pa.Table] | None = None,
    ) -> None:
        replaced = replaced or {}
        self.files, self._virtual, self._replaced = files, virtual, frozenset(replaced)
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:", config=_CONFIG)
        self._reached = Reached(self._connection.cursor())
        self._tables = self._lay_out(views, replaced)

    def close(self) -> None:
        """Close the connection; queries that still run end with an error."""
        self._reached.close()
        self._connection.close()

    def run(self, text: str, params: Mapping[str, object] | None = None, *, doing: str = "running SQL") -> pa.Table:
        """The answer to one reading statement.

        NotFound for an unknown table, column or function, BadInput for parameters that do not fit, BadQuestion for
        other errors of the statement, NotStored for facts that were not kept, Damaged for a damaged file.
        """
        params = dict(params or {})
        _check_statement(text, params, doing)
        names = self._reached.names(text)
        self._check(names, doing)
        with self._lock:
            cursor = self._connection.cursor()
        registered: list[Virtual] = []
        try:
            for name, make in self._virtual.items():
                if names is None or name in names:
                    registered.append(make())
                    cursor.register(name, registered[-1])
            relation = cursor.sql(text, params=params)
            return pa.table({}) if relation is None else relation.to_arrow_table()
        except duckdb.Error as error:
            for table in registered:
                if table.failure is not None:
                    raise table.failure from None
            raise _typed(_stated(error, cursor, text, params), doing) from error
        finally:
            cursor.close()

    def _check(self, names: frozenset[str] | None, doing: str) -> None:
        needed = set(self.files.sources) if names is None else set[str]()
        for name in names or ():
            needed |= self._tables.get(name, {name} & set(self.files.sources))
        needed -= self._replaced
        if names is not None:
            for table in sorted(needed & set(FACT_TABLES)):
                if self.files.parameters(table) is None:
                    raise facts_not_kept(table, doing)
        self.files.check(sorted(needed))

    def _lay_out(self, views: Sequence[View], replaced: Mapping[str, pa.Table]) -> dict[str, frozenset[str]]:
        """Create the schema and the views; the stored tables that each view reaches, by name."""
        connection = self._connection
        connection.execute("create schema stored")
        for name in self.files.sources:
            try:
                connection.execute(f"create view stored.{_quoted(name)} as {self._stored(name)}")
            except duckdb.Error as error:
                self.files.check([name])  # a file that DuckDB cannot open is most likely a damaged one
                raise _typed(error, f"reading the table {name}") from error
        for name, table in provenance_tables(self.files).items():
            self._load(name, table)
        for name, table in replaced.items():
            connection.execute(f"drop view stored.{_quoted(name)}")
            self._load(name, table)
        reaches: dict[str, frozenset[str]] = {}
        for view in views:
            reaches[view.name] = self._create(view, reaches)
        return reaches

    def _load(self, name: str, table: pa.Table) -> None:
        self._connection.register("loading", table.cast(pa.schema(map(_without_halves, table.schema))))
        self._connection.execute(f"create table stored.{_quoted(name)} as from loading")
        self._connection.unregister("loading")

    def _stored(self, name: str) -> str:
        paths = self.files.paths(name)
        if not paths:
            columns = (f"cast(null as {_sql_type(field.type)}) as {_quoted(field.name)}" for field in TABLES[name])
            return f"select {', '.join(columns)} where false"
        # Without it a folder named split=dev would add a column.
        return f"from read_parquet([{', '.join(map(_literal, paths))}], hive_partitioning = false)"

    def _create(self, view: View, reaches: Mapping[str, frozenset[str]]) -> frozenset[str]:
        try:
            self._connection.execute(f"create view main.{_quoted(view.name)} as {view.sql}")
        except duckdb.Error as error:
            raise _typed(error, f"creating the view {view.name}") from error
        names = self._reached.names(view.sql)
        stored = set(self.files.sources)
        if names is None:
            return frozenset(stored)
        return frozenset().union(*(reaches.get(name, frozenset()) | ({name} & stored) for name in names))


def facts_not_kept(table: str, doing: str) -> NotStored:
    """The error for a fact table that the store was told not to keep."""
    return NotStored(
        doing,
        f"this store kept no {table}",
        "facts that were computed when the maps were stored",
        'Ask a shipped question, which computes them from the maps, or ingest with [keep] facts = "standard"',
    )


def provenance_tables(files: ParquetFiles) -> dict[str, pa.Table]:
    """The small tables that come from manifests: kinds, heads, segments and additions."""
    contents = files.contents
    kinds, heads = [], []
    for position, name in enumerate(name for name in KINDS if name in contents.info.kinds):
        kind = contents.info.kinds[name]
        kinds.append({"kind": name, "position": position, "layers": kind.layers, "heads": kind.heads})
        share = max(1, kind.heads // max(1, kind.kv_heads))
        for index in range(kind.layers * kind.heads):
            layer, head = divmod(index, kind.heads)
            group = kind.param_groups[layer] if kind.param_groups else layer
            row = {"kind": name, "layer": layer, "head": head, "kv_head": head // share, "param_group": group}
            row |= {"queries": kind.queries, "keys": kind.keys, "causal": kind.causal, "position": index + 1}
            heads.append(row)
    units = []
    for unit in contents.units:
        size, examples = sum(file.bytes for file in unit.files), unit.rows.get("examples", 0)
        row = {"name": unit.id, "n_examples": examples, "n_files": len(unit.files), "n_bytes": size}
        row["tables"] = sorted(unit.rows)
        row["facts"] = json.dumps(dict(unit.facts), sort_keys=True)
        units.append((unit.is_segment, row))
    unit_schema = pa.schema(
        [
            ("name", pa.string()),
            ("n_examples", pa.int64()),
            ("n_files", pa.int64()),
            ("n_bytes", pa.int64()),
            ("tables", pa.list_(pa.string())),
            ("facts", pa.string()),
        ]
    )
    return {
        "kinds": pa.Table.from_pylist(kinds, schema=_KINDS),
        "heads": pa.Table.from_pylist(heads, schema=_HEADS),
        "segments": pa.Table.from_pylist([row for segment, row in units if segment], schema=unit_schema),
        "additions": pa.Table.from_pylist([row for segment, row in units if not segment], schema=unit_schema),
    }


_I16, _I32 = pa.int16(), pa.int32()
_KINDS = pa.schema([("kind", pa.string()), ("position", _I32), ("layers", _I32), ("heads", _I32)])
_HEADS = pa.schema(
    [
        ("kind", pa.string()),
        ("layer", _I16),
        ("head", _I16),
        ("kv_head", _I16),
        ("param_group", _I32),
        ("queries", pa.string()),
        ("keys", pa.string()),
        ("causal", pa.bool_()),
        ("position", _I32),  # of the head's entry in a list over heads, from 1 as DuckDB counts
    ]
)


def _check_statement(text: str, params: Mapping[str, object], doing: str) -> None:
    try:
        statements = duckdb.extract_statements(text)
    except Exception as error:  # also ValueError, for statement types that the bindings do not know
        raise BadQuestion(doing, _first_line(str(error)), "one SELECT statement") from error
    if len(statements) != 1:
        raise BadQuestion(doing, f"{len(statements)} statements", "one SELECT statement")
    if statements[0].type not in _READING:
        raise BadQuestion(
            doing, f"a statement of type {statements[0].type.name}", "one that reads: SELECT, FROM, DESCRIBE"
        )
    wanted = {str(name) for name in statements[0].named_parameters}
    if absent := sorted(wanted - set(params)):
        raise BadInput(doing, f"no value for ${', $'.join(absent)}", f"{absent[0]}=VALUE")
    if surplus := sorted(set(params) - wanted):
        raise BadInput(
            doing,
            f"a value for {', '.join(surplus)}, which the statement does not use",
            ", ".join(f"${name}" for name in sorted(wanted)) or "no parameters",
        )


def _stated(
    error: duckdb.Error, cursor: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, object]
) -> duckdb.Error:
    """The same error with its facts as data: `sql()` gives only text for what it finds while binding."""
    if not isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        return error
    try:
        cursor.execute(text, params)
    except duckdb.Error as stated:
        return stated
    return error


def _typed(error: duckdb.Error, doing: str) -> "AttnStoreError":
    """DuckDB's error as one of ours, by the kind that it states."""
    # str(error) is "Binder Error: {…}".
    body = str(error).partition("{")
    try:
        facts = json.loads(body[1] + body[2])
    except ValueError:
        return BadQuestion(doing, _first_line(str(error)), "SQL that DuckDB can run")
    message = str(facts.get("exception_message", error))
    subtype = facts.get("error_subtype")
    if subtype == "COLUMN_NOT_FOUND" or facts.get("exception_type") == "Catalog":
        what = "column" if subtype == "COLUMN_NOT_FOUND" else str(facts.get("type", "table")).lower()
        name, near = facts.get("name"), facts.get("candidates")
        found = f"there is no {what} {name!r}" if name else _first_line(message)
        return NotFound(doing, found, f"one such as {near}" if near else "", "store.tables lists the views and columns")
    return BadQuestion(doing, " ".join(message.split())[:600], "SQL that DuckDB can run")


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else "no message"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    # DuckDB expands *, ? and [ in file names; in brackets they stand for themselves.
    plain = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path.absolute()))
    return "'" + plain.replace("'", "''") + "'"


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


def column_types(database: Database) -> dict[str, dict[str, str]]:
    """The columns of each public table with their SQL types, by name."""
    text = """
        select table_name, column_name, data_type from information_schema.columns
        where table_schema = 'main' order by table_name, ordinal_position
    """
    found: dict[str, dict[str, str]] = {}
    for row in database.run(text, doing="listing the tables").to_pylist():
        found.setdefault(row["table_name"], {})[row["column_name"]] = row["data_type"]
    # Registered for a query that names it, and so not among the views.
    virtual = {"example": "INTEGER", "kind": "VARCHAR", "layer": "SMALLINT", "head": "SMALLINT"}
    virtual |= {"query": "INTEGER", "key": "INTEGER", "weight": "FLOAT"}
    return dict(sorted({**found, "attention": virtual, "word_attention": dict(virtual)}.items()))
