"""This file refuses statements that do not read, and turns DuckDB's errors into those of the package."""

import json
from collections.abc import Mapping
from functools import lru_cache

import duckdb

from attnstore.errors import AttnStoreError, BadInput, BadQuestion, NotFound

_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI, duckdb.StatementType.EXPLAIN)


def check_statement(text: str, params: Mapping[str, object], doing: str) -> None:
    """Raise unless the text is one reading statement with these parameters: BadQuestion, or BadInput for those."""
    try:
        statements = _parsed(text)
    except Exception as error:  # also ValueError, for statement types that the bindings do not know
        raise BadQuestion(doing, _first_line(str(error)), "one SELECT statement") from error
    if len(statements) != 1:
        raise BadQuestion(doing, f"{len(statements)} statements", "one SELECT statement")
    kind, wanted = statements[0]
    if kind not in _READING:
        raise BadQuestion(doing, f"a statement of type {kind.name}", "one that reads: SELECT, FROM, DESCRIBE")
    if absent := sorted(wanted - set(params)):
        raise BadInput(doing, f"no value for ${', $'.join(absent)}", f"{absent[0]}=VALUE")
    if surplus := sorted(set(params) - wanted):
        raise BadInput(
            doing,
            f"a value for {', '.join(surplus)}, which the statement does not use",
            ", ".join(f"${name}" for name in sorted(wanted)) or "no parameters",
        )


@lru_cache(256)
def _parsed(text: str) -> tuple[tuple[duckdb.StatementType, frozenset[str]], ...]:
    """The type and the parameters of each statement in a text."""
    found = duckdb.extract_statements(text)
    return tuple((one.type, frozenset(str(name) for name in one.named_parameters)) for one in found)


def stated(
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


def streamed(error: OSError) -> duckdb.Error:
    """DuckDB's error as it was before Arrow took it for one of a file."""
    name = str(error).partition(" Error:")[0]
    return {"INTERRUPT": duckdb.InterruptException, "Out of Memory": duckdb.OutOfMemoryException}.get(
        name, duckdb.Error
    )(str(error))


def typed(error: duckdb.Error, doing: str) -> AttnStoreError:
    """DuckDB's error as one of ours, by the kind that it states."""
    if isinstance(error, duckdb.FatalException | duckdb.InternalException):
        # Its text is a trace of addresses.
        return BadQuestion(doing, "DuckDB failed inside on this statement", "SQL that DuckDB can run", "Open again")
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
    return text.partition('"stack_trace"')[0].splitlines()[0] if text else "no message"
