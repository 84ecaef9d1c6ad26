"""This file is the door to two stores: open both in one connection, ask what differs."""

import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from attnstore.errors import BadInput, NotFound
from attnstore.store.store import Store
from attnstore.store.store import open as open_store

if TYPE_CHECKING:
    from attnstore.store.compared import Compared
    from attnstore.store.pairs import Pairs
    from attnstore.store.result import Provenance, Result


def compare(a: "str | Path | Store", b: "str | Path | Store") -> "Comparison":
    """Two stores side by side: folders, or stores that are open (at a snapshot or tag of their own).

    A folder is opened here and closed with the comparison; an open store stays open. Raises as `open` does.
    """
    opened: list[Store] = []
    stores: list[Store] = []
    try:
        for place in (a, b):
            if not isinstance(place, Store):
                opened.append(open_store(place))
            stores.append(place if isinstance(place, Store) else opened[-1])
    except BaseException:
        for store in opened:
            store.close()
        raise
    return Comparison(stores[0], stores[1], tuple(opened))


class Comparison:
    """Two stores in one connection, `a` and `b`. Threads may share it; close it, or use `with`.

    SQL names the tables of either store (`a.examples`, `b.head_facts`) and three about both. `pairs`: which example
    is which, by equal tokens, else by equal name and text or words. `unpaired`: who has no partner, and why.
    `map_differences`: how far apart the maps of a pair are, head by head; a question has to ask for it in `reads:`.
    """

    def __init__(self, a: Store, b: Store, opened: tuple[Store, ...] = ()) -> None:
        self.a, self.b = a, b
        self._opened = opened
        self._lock = threading.Lock()
        self._compared: Compared | None = None
        self._closed = False

    @property
    def pairs(self) -> "Pairs":
        """The pairs of examples, and those without a partner."""
        return self._engine.pairs

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """The tables that SQL can name, each with its columns and their SQL types."""
        from attnstore.store.database import column_types

        return column_types(self._engine.database)

    def sql(self, text: str, /, **params: object) -> "Result":
        """The answer to one SELECT over `tables`; `params` fill its $names. Raises as `Store.sql` does."""
        from attnstore.store.asking import plain
        from attnstore.store.result import Result

        values = plain(params)
        return Result(self._engine.database.run(text, values), self._provenance(text, values))

    def ask(self, question: str, /, *, where: str | None = None, **params: object) -> "Result":
        """The answer to a question of two stores: one that ships (compare/…), or your own, by the path of its file.

        `where` is a condition on the columns of `examples` that has to hold in both stores. A parameter `kind` that is
        null becomes the first kind of `a`. Raises as `Store.ask` does, and BadInput for a question of one store,
        where the models have other shapes than the question needs, and where no example of one is one of the other.
        """
        from attnstore.catalogue.catalogue import bind, find
        from attnstore.store.asking import own_text
        from attnstore.store.result import Result

        asked = find(question)
        doing = f"asking {asked.name}"
        if asked.reads and not asked.compares:
            raise BadInput(
                doing,
                "it is asked of one store",
                "a question of two, such as compare/cosine",
                "attnstore ask QUESTION A",
            )
        values = bind(asked, params)
        if "kind" in values:
            values["kind"] = self._kind(values["kind"], doing)
        database = self._engine.answering(asked, values, where)
        used = {name: value for name, value in values.items() if name in asked.sql_params}
        table = database.run(asked.sql, used, doing=doing)
        facts = replace(self._provenance(asked.sql, values), question=asked.name, source=asked.source or None)
        return Result(table, replace(facts, where=where, text=own_text(asked)), asked)

    def close(self) -> None:
        """Close the connection, and the stores that were opened for it; results that were handed out stay."""
        with self._lock:
            compared, self._compared, self._closed = self._compared, None, True
        if compared is not None:
            compared.close()
        for store in self._opened:
            store.close()

    def __enter__(self) -> "Comparison":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        pairs, lines = self.pairs, ["attnstore comparison"]
        for name, store in (("a", self.a), ("b", self.b)):
            facts = store.summary()
            lines.append(f"{name:>9}  {facts['model']}, {facts['layers x heads']}, {facts['path']}")
        alone = pairs.unpaired["store"].to_pylist()
        tokens, words = (pairs.count(column) for column in ("equal_tokens", "equal_words"))
        lines.append(f"{'pairs':>9}  {len(pairs.pairs)}: {tokens} with equal tokens, {words} with equal words")
        lines.append(f"{'unpaired':>9}  {alone.count('a')} of a, {alone.count('b')} of b")
        return "\n".join(lines)

    @property
    def _engine(self) -> "Compared":
        with self._lock:
            if self._closed:
                raise BadInput("comparing two stores", "the comparison was closed", "an open one", "Compare again")
            if self._compared is None:
                from attnstore.store.compared import Compared

                names = {"a": f"of A ({self.a.path})", "b": f"of B ({self.b.path})"}
                self._compared = Compared(self.a.engine, self.b.engine, names)
                # DuckDB complains at the end of Python about connections that nobody closed.
                weakref.finalize(self, self._compared.close)
            return self._compared

    def _kind(self, given: object, doing: str) -> str:
        """The kind that is asked for, or the first of `a`; NotFound where one of the stores has no such maps."""
        kind = self.a.checked_kind(None if given is None else str(given))
        if kind not in self.b.kinds:
            raise NotFound(doing, f"B ({self.b.path}) has no maps of kind {kind}", f"one of {', '.join(self.b.kinds)}")
        return kind

    def _provenance(self, text: str, params: Mapping[str, object]) -> "Provenance":
        from attnstore.store.asking import provenance

        facts, other = (provenance(store, text, params, None) for store in (self.a, self.b))
        names = ("store_id", "title", "snapshot", "content_hash", "model", "revision")
        return replace(facts, compared_with={name: getattr(other, name) for name in names})
