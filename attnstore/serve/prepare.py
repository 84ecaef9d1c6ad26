"""This file is the process that computes beforehand what questions need and a store does not keep.

Each worker would compute it for the first who asks, and a worker that takes the place of another one, again.
"""

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnstore.catalogue.catalogue import bind, questions
from attnstore.errors import AttnStoreError
from attnstore.serve.confine import confine
from attnstore.store.contents import read_contents
from attnstore.store.facts import DERIVED, FACTS
from attnstore.store.fill import batches
from attnstore.store.prepared import Prepared, Table
from attnstore.store.store import Store
from attnstore.store.walls import Walls

_NICE = 10


def prepare(stores: Mapping[str, Mapping[str, Any]], folder: Path, limit: int, walls: Walls) -> None:
    """Write what questions want with their own parameters, store by store, until it takes `limit` bytes."""
    for place in stores.values():
        contents = read_contents(place["path"], snapshot=place["snapshot"], expect=place["content_hash"])
        prepared = Prepared(folder, place["content_hash"])
        with Store(contents, walls, prepared) as store:
            for name, wanted in _wanted(store):
                for tables in _parts(wanted):
                    if limit <= 0:
                        return
                    if prepared.find(*tables) is None:
                        # Who asks is told why a table cannot be had, such as of a store without maps.
                        # And one that has no room here is computed for who asks.
                        with contextlib.suppress(AttnStoreError, OSError):
                            limit -= _written(store, prepared, tables, wanted, f"preparing {name}")


def _wanted(store: Store) -> Iterator[tuple[str, tuple[Table, ...]]]:
    """The questions that need no choice of an example, each with the tables that it wants."""
    for question in questions().values():
        if question.compares:
            continue
        with contextlib.suppress(AttnStoreError):
            values = bind(question, {})
            if "kind" in values:
                values["kind"] = store.checked_kind(None)
            yield question.name, store.engine.computed.wanted(question, values)


def _parts(wanted: tuple[Table, ...]) -> Iterator[tuple[Table, ...]]:
    """Each fact table alone, then each table that is made of them with all of them."""
    facts = tuple(table for table in wanted if table[0] in FACTS)
    yield from ((table,) for table in facts)
    yield from ((table, *facts) for table in wanted if table[0] in DERIVED)


def _written(store: Store, prepared: Prepared, tables: tuple[Table, ...], wanted: tuple[Table, ...], doing: str) -> int:
    name, params = tables[0]
    if name in FACTS:
        fact = FACTS[name]
        return prepared.write(tables, fact.schema, batches(store.engine, name, dict(params), doing))
    made = store.engine.computed.tables(wanted, None, doing)[name]
    return prepared.write(tables, made.schema, (made,))


def main() -> None:
    """Do what the argument says, as the server wrote it."""
    start = json.loads(sys.argv[1])
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="prepare: %(message)s")
    if hasattr(os, "nice"):
        os.nice(_NICE)
    confine(start["address_space"], start["limit"])
    walls = Walls(start["seconds"], start["memory"], 1)
    prepare(start["stores"], Path(start["folder"]), start["limit"], walls)
