"""This file gives a question the facts that it needs: the stored ones where their parameters fit, else new ones."""

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from attnstore.catalogue.question import Question
from attnstore.errors import BadInput, BadQuestion, NotStored
from attnstore.store.database import Database
from attnstore.store.fact import STATISTIC
from attnstore.store.facts import DERIVED, FACTS
from attnstore.store.fill import INGEST, compute
from attnstore.store.known_rows import named
from attnstore.store.places import PlaceTable
from attnstore.store.prepared import Table

if TYPE_CHECKING:
    from attnstore.store.engine import Engine

_HELD = 32
"""Databases that are held; what they copy of the store is bounded by its budget."""

_HELD_BYTES = 256 * 2**20
"""Bytes of the computed tables that are held; each lies in the memory of its database once more."""

_HELD_CONDITIONS = 2
"""Databases of some examples only that are held behind walls: strangers think of new conditions all day."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Computed:
    """The databases that answer questions: the store's own, and the last few in which facts were computed anew."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._held: OrderedDict[tuple[str | None, tuple[Table, ...]], Database] = OrderedDict()
        self._tables: OrderedDict[tuple[bytes | None, Table], pa.Table] = OrderedDict()
        self._lock = threading.Lock()

    def database(self, question: Question, values: Mapping[str, object], where: str | None = None) -> Database:
        """Where the question can be answered, over all examples or those for which the SQL of `where` holds.

        NotStored where that needs maps which were not kept.
        """
        if where is not None:
            check_condition(where, f"asking {question.name}")
        wanted = self.wanted(question, values)
        if not wanted and where is None:
            return self._engine.database
        # One at a time: eight threads that ask the same must not reduce the same maps eight times.
        with self._lock:
            key = (where, wanted)
            if key not in self._held:
                if where is not None and self._engine.walls is not None:
                    self._make_room()
                self._held[key] = self._made(wanted, where, f"asking {question.name}")
            return _hold(self._held, key, lambda made: made.replaced_bytes)

    def close(self) -> None:
        """Close what is held."""
        with self._lock:
            for database in self._held.values():
                database.close()
            self._held.clear()
            self._tables.clear()

    def _make_room(self) -> None:
        conditions = [key for key in self._held if key[0] is not None]
        for key in conditions[: len(conditions) - _HELD_CONDITIONS + 1]:
            self._held.pop(key).close()  # behind walls one thread asks: nobody else reads it

    def _made(self, wanted: tuple[Table, ...], where: str | None, doing: str) -> Database:
        places = None if where is None else self.places(where, doing)
        return self._engine.replacing(self.tables(wanted, places, doing), places)

    def tables(self, wanted: tuple[Table, ...], places: PlaceTable | None, doing: str) -> dict[str, pa.Table]:
        """The wanted tables, computed over all examples or those of `places`."""
        engine = self._engine
        facts = tuple(table for table in wanted if table[0] in FACTS)
        tables = {table[0]: self._fact_table(table, places, doing) for table in facts}
        made = [table for table in wanted if table[0] in DERIVED]
        ready = {table[0]: self._prepared(places, table, *facts) for table in made}
        if any(found is None for found in ready.values()):
            is_stored = not tables and places is None
            source = engine.database if is_stored else engine.replacing(tables, places)
            for table, params in made:
                how, values = DERIVED[table], dict(params)
                reading = how.reading(values)
                elsewhere = {STATISTIC, *self._defaults(reading.table)}
                own = {name: value for name, value in values.items() if name not in elsewhere}
                asked = {name: values[name] for name in named((reading.sql,))}
                ready[table] = how.make(source.run(reading.sql, asked, doing=doing), **own).cast(how.schema)
            if not is_stored:
                source.close()
        return tables | {name: found for name, found in ready.items() if found is not None}

    def _fact_table(self, table: Table, places: PlaceTable | None, doing: str) -> pa.Table:
        # Several questions want one table, each with others beside it.
        key = (None if places is None else places.examples.tobytes(), table)
        if key not in self._tables:
            found = self._prepared(places, table)
            self._tables[key] = (
                compute(self._engine, table[0], dict(table[1]), doing, places) if found is None else found
            )
        return _hold(self._tables, key, lambda made: made.nbytes)

    def _prepared(self, places: PlaceTable | None, *tables: Table) -> pa.Table | None:
        prepared = self._engine.prepared
        return None if prepared is None or places is not None else prepared.find(*tables)

    def places(self, where: str, doing: str) -> PlaceTable:
        """Where the maps of those examples lie for which the SQL of `where` holds."""
        # On lines of its own, so that a comment at its end does not take the bracket along.
        text = f"select example from examples where (\n{where}\n)"
        found = self._engine.database.run(text, doing=f"{doing} where {where}")
        return self._engine.places.only(found["example"].to_numpy().astype(np.int64))

    def wanted(self, question: Question, values: Mapping[str, object]) -> tuple[Table, ...]:
        """The tables that the question needs and the store does not hold with these parameters."""
        maps = self._engine.contents.info.kept.maps
        found: dict[str, Table] = {}
        for read in question.reads:
            if read.table in ("attention", "word_attention") and maps == "none":
                raise NotStored(
                    f"asking {question.name}", "this store kept facts, no maps", "maps", INGEST.format('maps = "all"')
                )
            known = FACTS.get(read.table) or DERIVED.get(read.table)
            if known is None:
                continue
            # A parameter that is null takes what is stored, else the default.
            params = {name: value for name, value in read.wanted(values).items() if value is not None}
            if unknown := set(params) - set(known.defaults):
                raise BadQuestion(
                    f"reading {question.path}",
                    f"{read.table} has no parameter {sorted(unknown)[0]!r}",
                    f"among {', '.join(known.defaults) or 'none'}",
                )
            source = read.table
            if read.table in DERIVED:
                source = DERIVED[read.table].reading(params).table
                found[read.table] = (read.table, tuple(sorted(({**known.defaults, **params}).items(), key=_first)))
                params = {name: value for name, value in params.items() if name in self._defaults(source)}
            # Evidence is stored or not there.
            if source in FACTS and (fact := self._fact(source, params)) is not None:
                found[source] = fact
        return tuple(sorted(found.values(), key=_first))

    def _defaults(self, table: str) -> Mapping[str, object]:
        return FACTS[table].defaults if table in FACTS else {}

    def _fact(self, table: str, params: Mapping[str, object]) -> Table | None:
        """The fact table with all of its parameters, or None where the stored one fits."""
        stored, defaults = self._engine.files.parameters(table), FACTS[table].defaults
        # What a store does not record of its facts is a parameter that they were not given.
        known = {**defaults, **{name: value for name, value in (stored or {}).items() if name in defaults}}
        if stored is not None and all(_same(known[name], value) for name, value in params.items()):
            return None
        return table, tuple(sorted({**known, **params}.items(), key=_first))


def check_condition(where: str, doing: str) -> None:
    """Raise BadInput unless `where` is one expression, and not a piece of SQL that goes on behind a bracket."""
    expected = "a condition in SQL on the columns of examples, such as \"label = 'positive'\""
    if not isinstance(where, str) or not where.strip():
        raise BadInput(doing, f"where={where!r}", expected)
    try:
        duckdb.SQLExpression(where)
    except duckdb.Error as error:
        raise BadInput(doing, f"where={where!r} ({str(error).splitlines()[0]})", expected) from error


def _hold(held: OrderedDict[_Key, _Value], key: _Key, size: Callable[[_Value], int]) -> _Value:
    """The value of `key`, which becomes the last to make room."""
    held.move_to_end(key)
    while len(held) > _HELD or (len(held) > 1 and sum(map(size, held.values())) > _HELD_BYTES):
        held.popitem(last=False)
    return held[key]


def _first(pair: tuple[str, object]) -> str:
    return pair[0]


def _same(stored: object, wanted: object) -> bool:
    if isinstance(stored, int | float) and isinstance(wanted, int | float):
        return math.isclose(stored, wanted, rel_tol=1e-9)
    return stored == wanted
