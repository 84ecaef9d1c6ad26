"""This file says which Parquet files make up each table, and checks a file's checksum before its first use."""

import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.fact_tables import ANNOTATIONS, COMPUTED, DECLARED, FROM_MAPS
from attnstore.format.file_checks import check_file
from attnstore.format.manifest import FETCH, File, Unit
from attnstore.format.parquet import table_faults
from attnstore.store.contents import Contents
from attnstore.store.held import Budget
from attnstore.store.walls import url

FACT_TABLES = ("head_facts", "token_facts", "token_masses", "word_facts", *COMPUTED)
"""Tables that a reduction can fill anew from the maps."""

_TABLE_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_WHOLE = "*"


class ParquetFiles:
    """The files of every table: those of the segments, or of the additions that replace them.

    An addition of scope `store` replaces a whole table, one of scope `segment` the table of that segment, one of scope
    `part` the rows of that part; the later addition wins.
    """

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.sources: dict[str, tuple[tuple[Unit, File], ...]] = {name: () for name in DECLARED}
        found: dict[str, dict[str, tuple[Unit, File]]] = {}
        for unit in contents.units:
            scope = "segment" if unit.is_segment else str(unit.facts.get("scope"))
            whole = scope not in ("segment", "part")
            own = unit.id if unit.is_segment else str(unit.facts.get(scope))
            for file in unit.files:
                table = file.path.removesuffix(".parquet")
                if file.path != names.parquet_name(table) or not _TABLE_NAME.fullmatch(table):
                    continue
                if whole:
                    found[table] = {}
                elif _WHOLE in found.get(table, {}):
                    raise Damaged(
                        f"opening {contents.root}",
                        f"the addition {unit.id} replaces {table} of one segment after another replaced all of it",
                        "an addition of scope store",
                    )
                found.setdefault(table, {})[_WHOLE if whole else own] = (unit, file)
        for table in self._outdated(found):
            del found[table]
        for table, by_segment in found.items():
            self.sources[table] = tuple(by_segment.values())
        self.budget = Budget()
        self._checked: set[Path] = set()
        self._lock = threading.Lock()

    def _outdated(self, found: Mapping[str, Mapping[str, tuple[Unit, File]]]) -> list[str]:
        """Facts that were computed before an annotation was replaced, which they counted."""
        order = {unit.id: number for number, unit in enumerate(self.contents.units)}
        newest = max((order[unit.id] for unit in self.contents.additions if ANNOTATIONS & set(unit.rows)), default=-1)
        return [
            table
            for table, files in found.items()
            if table in COMPUTED
            and table not in FROM_MAPS
            and min(order[unit.id] for unit, _ in files.values()) < newest
        ]

    def paths(self, table: str) -> list[Path]:
        """The files of a table, in order; fetched, where the store lies behind an address."""
        self.contents.fetch(self.sources[table])
        return [self.contents.path(unit, file) for unit, file in self.sources[table]]

    def urls(self, table: str) -> list[str]:
        """The same as a database behind walls names them."""
        return [self._url(unit, file) for unit, file in self.sources[table]]

    def named(self) -> dict[str, Path]:
        """Every file of every table, by that name."""
        every = (source for sources in self.sources.values() for source in sources)
        return {self._url(unit, file): self.contents.path(unit, file) for unit, file in every}

    def _url(self, unit: Unit, file: File) -> str:
        return url(self.contents.snapshot.content_hash, f"{unit.folder}/{file.path}")

    def segment_paths(self, table: str, segment: int) -> list[Path]:
        """The files of a table that may hold rows of a segment; that of an addition holds others as well."""
        name = names.segment_name(segment)
        chosen = ((unit, file) for unit, file in self.sources[table] if unit.id == name or not unit.is_segment)
        return [self.contents.path(unit, file) for unit, file in chosen]

    def parameters(self, table: str) -> Mapping[str, Any] | None:
        """What a stored fact was computed with (eps, drop, pieces); None where the store does not hold it."""
        facts = self.contents.info.facts
        # Among several additions, one per segment, the last speaks for all: a refresh covers every segment.
        for unit, _ in reversed(self.sources[table]):
            if not unit.is_segment:
                return dict(unit.facts.get("parameters", facts.get("parameters", {})))
        if table not in facts.get("tables", ()):
            return None
        return dict(facts.get("distances" if table == "head_distances" else "parameters", {}))

    def check(self, tables: Iterable[str]) -> None:
        """Fetch and read every file of these tables that was not used before; Damaged where a checksum differs."""
        wanted = [source for table in tables for source in self.sources.get(table, ())]
        # In any case: another process may have dropped what this one fetched.
        self.contents.fetch(wanted)
        for unit, file in wanted:
            path = self.contents.path(unit, file)
            with self._lock:
                if path in self._checked:
                    continue
            # Outside the lock: two threads may read one file twice, but none waits for the other.
            try:
                check_file(path, file)
            except Damaged:
                if not self.contents.fetch([(unit, file)], anew=True):
                    raise
                check_file(path, file)  # the copy that was kept had been spoilt
            table = file.path.removesuffix(".parquet")
            # Its bytes are as the manifest says; whether they are such a table, only its footer tells.
            if fault := next(table_faults(path, table, unit.rows.get(table)), None):
                raise Damaged(f"reading {path}", fault, f"the table {table}", FETCH)
            with self._lock:
                self._checked.add(path)
