"""This file gives a question of two stores the tables that it needs, in one connection that shows both."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from attnstore.catalogue.question import Question, Read
from attnstore.errors import BadQuestion
from attnstore.format.names import KINDS
from attnstore.store.database import Database
from attnstore.store.engine import Engine
from attnstore.store.map_differences import DEFAULTS, SCHEMA, check_shapes, differences
from attnstore.store.needs import check_needs
from attnstore.store.pairs import LEVELS, Pairs, check_pairs, find_pairs
from attnstore.store.places import PlaceTable
from attnstore.store.prepared import Table

_HELD = 4

Wanted = tuple[tuple[Table, ...], tuple[Table, ...], Table | None]
"""What is computed anew in A and in B, and how their maps are compared."""


class Compared:
    """The databases over two stores: one for any SQL, and the last few in which something was computed anew.

    `names` are what errors call the stores.
    """

    def __init__(self, a: Engine, b: Engine, names: Mapping[str, str]) -> None:
        self._engines, self._names = {"a": a, "b": b}, names
        self._held: OrderedDict[tuple[str | None, Wanted], Database] = OrderedDict()
        self._lock = threading.RLock()
        self._base: tuple[Database, Pairs] | None = None

    @property
    def pairs(self) -> Pairs:
        """Which example is which, and who has no partner."""
        return self._laid_out()[1]

    @property
    def database(self) -> Database:
        """Both stores as they are, and their pairs."""
        return self._laid_out()[0]

    def answering(self, question: Question, values: Mapping[str, object], where: str | None = None) -> Database:
        """Where the question can be answered, over all examples or those of both for which `where` holds.

        NotStored where a store lacks an annotation or maps that it needs, BadInput where no examples are pairs, or
        where heads are joined and the models have not as many layers and heads.
        """
        doing = f"asking {question.name}"
        own = {side: replace(question.of(side), name=f"{question.name} {self._names[side]}") for side in ("a", "b")}
        for side, engine in self._engines.items():
            check_needs(own[side], values, engine.database)
        a, b = (engine.computed.wanted(own[side], values) for side, engine in self._engines.items())
        reads = {read.table: read for read in question.reads}
        maps = _map_parameters(reads["map_differences"], values, question) if "map_differences" in reads else None
        # Who asks about examples without a partner, or for all examples of both, does not need pairs.
        paired = "pairs" in reads and "unpaired" not in reads and values.get("paired") is not False
        if maps is not None or paired:
            level = None if maps is None else str(dict(maps[1])["level"])
            check_pairs(self.database, self.pairs, level, doing)
        columns = {column.name for column in question.returns}
        # A row that names a head, and no store, is of that head in both.
        if "kind" in values and {"layer", "head"} <= columns and "store" not in columns:
            check_shapes(self._engines["a"], self._engines["b"], str(values["kind"]), doing)
        if where is None and not a and not b and maps is None:
            return self.database
        # One at a time: threads that ask the same must not reduce the same maps once each.
        with self._lock:
            key = (where, (a, b, maps))
            if key not in self._held:
                self._held[key] = self._made((a, b, maps), where, doing)
                while len(self._held) > _HELD:
                    self._held.popitem(last=False)
            self._held.move_to_end(key)
            return self._held[key]

    def close(self) -> None:
        """Close every database; the stores stay open."""
        with self._lock:
            for database in self._held.values():
                database.close()
            self._held.clear()
            if self._base is not None:
                self._base[0].close()
            self._base = None

    def _laid_out(self) -> tuple[Database, Pairs]:
        with self._lock:
            if self._base is None:
                a, shown = self._engines["a"], {side: engine.shown() for side, engine in self._engines.items()}
                database = Database(shown, a.walls, a.threads)
                try:
                    pairs = find_pairs(database)
                except BaseException:
                    database.close()
                    raise
                database.add(_tables(pairs))
                self._base = database, pairs
            return self._base

    def _made(self, wanted: Wanted, where: str | None, doing: str) -> Database:
        a, b, maps = wanted
        tables: dict[str, dict[str, pa.Table]] = {}
        places: dict[str, PlaceTable] = {}
        pairs = self.pairs
        for (side, engine), own in zip(self._engines.items(), (a, b), strict=True):
            who = f"{doing} {self._names[side]}"
            if where is not None:
                places[side] = engine.computed.places(where, who)
            tables[side] = engine.computed.tables(own, places.get(side), who)
        if where is not None:
            pairs = pairs.only(places["a"].examples, places["b"].examples)
        shown = {side: engine.shown(tables[side], places.get(side)) for side, engine in self._engines.items()}
        beside = {} if maps is None else {"map_differences": self._differences(pairs, maps, doing)}
        database = Database(shown, self._engines["a"].walls, self._engines["a"].threads)
        database.add(_tables(pairs) | beside)
        return database

    def _differences(self, pairs: Pairs, maps: Table, doing: str) -> pa.Table:
        params = dict(maps[1])
        level = str(params["level"])
        chosen = pairs.pairs.filter(pairs.pairs[LEVELS[level]])
        partners = dict(zip(chosen["example_a"].to_pylist(), chosen["example_b"].to_pylist(), strict=True))
        a, b = self._engines["a"], self._engines["b"]
        shared = [kind for kind in KINDS if kind in a.contents.info.kinds and kind in b.contents.info.kinds]
        kinds = shared if params["kind"] is None else [str(params["kind"])]
        eps = float(str(params["eps"]))
        parts = [differences(a, b, partners, kind=kind, level=level, eps=eps, doing=doing) for kind in kinds]
        return pa.concat_tables([SCHEMA.empty_table(), *parts])


def _tables(pairs: Pairs) -> dict[str, pa.Table]:
    return {"pairs": pairs.pairs, "unpaired": pairs.unpaired}


def _map_parameters(read: Read, values: Mapping[str, object], question: Question) -> Table:
    params = {name: value for name, value in read.wanted(values).items() if value is not None}
    if unknown := sorted(set(params) - set(DEFAULTS)):
        raise BadQuestion(
            f"reading {question.path}",
            f"map_differences has no parameter {unknown[0]!r}",
            f"among {', '.join(DEFAULTS)}",
        )
    found = {**DEFAULTS, **params}
    if found["level"] not in LEVELS:
        raise BadQuestion(f"reading {question.path}", f"level={found['level']}", f"one of {', '.join(LEVELS)}")
    return "map_differences", tuple(sorted(found.items()))
