"""This file is a worker: a confined process that opens the stores and answers one request after the other.

It speaks over its standard input and output (`wire`); what any library prints goes to standard error.
"""

import contextlib
import gc
import io
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import duckdb
import numpy as np

from attnstore.catalogue.catalogue import questions
from attnstore.errors import AttnStoreError, NotFound
from attnstore.serve import wire
from attnstore.serve.confine import confine
from attnstore.serve.forms import write
from attnstore.serve.gate import Gate
from attnstore.serve.problems import problem
from attnstore.serve.published import cited
from attnstore.store import asking
from attnstore.store.comparison import Comparison, compare
from attnstore.store.contents import read_contents
from attnstore.store.prepared import Prepared
from attnstore.store.store import Store
from attnstore.store.walls import Walls

Answer = tuple[wire.Head, bytes]


class Worker:
    """What a worker holds open: the stores by name, a gate for each, and the comparisons that were asked for."""

    def __init__(self, start: wire.Head) -> None:
        walls = Walls(start["time_limit"], start["memory"], start["threads"])
        self._stores: dict[str, Store] = {}
        self._gates: dict[str, Gate] = {}
        self._compared: dict[tuple[str, str], Comparison] = {}
        self._places: list[tuple[str, str]] = []
        for name, place in start["stores"].items():
            contents = read_contents(place["path"], snapshot=place["snapshot"], expect=place["content_hash"])
            prepared = Prepared(Path(start["prepared"]), place["content_hash"]) if start["prepared"] else None
            self._stores[name] = store = Store(contents, walls, prepared)
            self._places += [(str(contents.folder.absolute()), name), (str(contents.root), name)]
            self._gates[name] = Gate(set(store.tables))  # which also makes every view, once
            with contextlib.suppress(AttnStoreError):
                # Loads what maps are read with, which no statement has to wait for.
                store.sql("from attention limit 1")
        self._kinds: dict[str, Callable[[wire.Head], Answer]] = {
            "sql": self._sql,
            "ask": self._ask,
            "map": self._map,
            "tables": self._tables,
            "condition": self._condition,
            "ping": self._ping,
        }

    def answer(self, request: wire.Head) -> Answer:
        """The answer to one request, or the problem with it."""
        try:
            return self._kinds[request["do"]](request)
        except Exception as error:  # whatever it is, the next request must find the worker as it was
            found = problem(error, self._places)
            if found.kind == "internal":
                logging.getLogger("attnstore.serve").exception("a request failed")
            return {"problem": found.to_wire(), "broken": self._is_broken(error)}, b""

    def _is_broken(self, error: Exception) -> bool:
        """Whether the engine will answer nothing any more: an error inside DuckDB leaves a database for dead."""
        if isinstance(error.__cause__, duckdb.FatalException | duckdb.InternalException):
            return True
        if isinstance(error, MemoryError | duckdb.OutOfMemoryException):
            return True  # what it holds leaves no room for a database: a new worker has it
        try:
            self._ping({})
        except Exception:
            return True
        return False

    def _ping(self, request: wire.Head) -> Answer:
        for store in self._stores.values():
            store.engine.database.run("select 1")
        return {}, b""

    def _store(self, name: str) -> Store:
        if name not in self._stores:
            raise NotFound(f"looking for the store {name!r}", "there is none", ", ".join(self._stores))
        return self._stores[name]

    def _sql(self, request: wire.Head) -> Answer:
        store = self._store(request["store"])
        self._gates[request["store"]].check(request["sql"])
        text, params, most = request["sql"], request["params"], request["max_bytes"]
        return self._written(request, lambda rows: asking.run(store, text, params, rows, most))

    def _ask(self, request: wire.Head) -> Answer:
        name, where, params = request["question"], request.get("where"), request["params"]
        if name not in questions():
            questions()[name]  # which says what is near; a path is not taken from outside
        if where is not None:
            self._check_condition(request)
        if len(request["stores"]) == 2:
            both = self._comparison(*request["stores"])
            return self._written(request, lambda rows: both.ask(name, where=where, **params))
        store = self._store(request["stores"][0])
        return self._written(request, lambda rows: asking.ask(store, name, params, where, rows))

    def _condition(self, request: wire.Head) -> Answer:
        """Nothing, once the condition of a question has run alone."""
        self._check_condition(request)
        for name in request["stores"]:
            store = self._store(name)
            store.engine.computed.places(request["where"], f"asking {request['question']}")
        return {}, b""

    def _check_condition(self, request: wire.Head) -> None:
        for name in request["stores"]:
            self._store(name)
            self._gates[name].check_condition(request["where"], f"asking {request['question']} where")

    def _comparison(self, a: str, b: str) -> Comparison:
        if (a, b) not in self._compared:
            for comparison in self._compared.values():  # one at a time: each holds both stores' tables
                comparison.close()
            self._compared = {(a, b): compare(self._store(a), self._store(b))}
        return self._compared[a, b]

    def _written(self, request: wire.Head, ask: Callable[[int], Any]) -> Answer:
        begun = time.perf_counter()
        result = ask(request["max_rows"] + 1)
        elapsed = (time.perf_counter() - begun) * 1000
        form, most_rows, most_bytes = request["form"], request["max_rows"], request["max_bytes"]
        written = write(result, form, most_rows, most_bytes, elapsed)
        cite = {name: value for name, value in cited(result).items() if name not in ("sql", "params", "where")}
        head = {
            "rows": written.rows,
            "truncated": written.truncated,
            "snapshot": result.provenance.content_hash,
            "cite": cite,
        }
        return head, written.body

    def _map(self, request: wire.Head) -> Answer:
        store = self._store(request["store"])
        options = request["options"]
        found = store.attention(
            request["example"],
            kind=options.get("kind"),
            layer=request["layer"],
            head=request["head"],
            level=cast(Literal["token", "word"], options.get("level", "token")),
            specials=options.get("specials", True),
            hide=options.get("hide", ()),
            renormalise=options.get("renormalise", False),
            weights=options.get("weights", "attention"),
        )
        head = {
            "example": found.example,
            "name": found.name,
            "kind": found.kind,
            "level": found.level,
            "weights_are": found.of,
            "layer": found.layers[0],
            "head": found.heads[0] if found.heads else None,
            "queries": list(found.queries),
            "keys": list(found.keys),
            "dims": list(found.dims),
            "shape": list(found.shape),
            "snapshot": store.snapshot.content_hash,
        }
        written = io.BytesIO()
        np.save(written, found.to_numpy(), allow_pickle=False)
        return head, written.getvalue()

    def _tables(self, request: wire.Head) -> Answer:
        return {"tables": self._store(request["store"]).tables}, b""


def serve() -> None:
    """Answer the requests on standard input until it ends."""
    pipe_in = cast(BinaryIO, os.fdopen(os.dup(0), "rb"))
    pipe_out = cast(BinaryIO, os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="worker: %(message)s")
    # Copying a bounded answer once more costs less than binding its statement twice.
    warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning)
    try:
        start, _ = wire.receive(pipe_in)
        confine(start["address_space"])
        try:
            worker = Worker(start)
        except Exception as error:
            wire.send(pipe_out, {"problem": problem(error).to_wire(), "said": str(error)})
            return
        gc.freeze()  # what is there now stays; collections need not look at it again
        wire.send(pipe_out, {"ready": True})
        while True:
            request, _ = wire.receive(pipe_in)
            wire.send(pipe_out, *worker.answer(request))
    except wire.Gone:
        return  # the server ended


if __name__ == "__main__":
    serve()
