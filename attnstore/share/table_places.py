"""This file says where each table of a new store goes: into its segments, into additions, or nowhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnstore.format.fact_tables import ANNOTATIONS, MEASURED
from attnstore.share.source import Source
from attnstore.store.parquet_files import FACT_TABLES

_ALWAYS = {"examples", "skipped", *ANNOTATIONS, *MEASURED}


@dataclass(frozen=True, slots=True)
class Places:
    """`kept` are tables of facts in the segments, `added` those of additions with their parameters.

    `dropped` are tables that sources have, computed with parameters that differ among them, or not all of them have.
    """

    kept: tuple[str, ...]
    added: Mapping[str, Mapping[str, Any]]
    dropped: tuple[str, ...]
    without: frozenset[str]

    def is_in_segments(self, table: str) -> bool:
        """Whether segments hold the table."""
        return table not in self.without and (table in _ALWAYS or table in self.kept)


def places_of(sources: Sequence[Source], without: frozenset[str]) -> Places:
    """Where the tables of these sources, which planned the same facts, go in a store that is made from them."""
    facts = sources[0].info.facts
    kept: list[str] = []
    added: dict[str, Mapping[str, Any]] = {}
    dropped: list[str] = []
    for table in dict.fromkeys((*facts.get("tables", ()), *FACT_TABLES)):
        found = [source.files.parameters(table) for source in sources]
        if table in without or all(one is None for one in found):
            continue
        planned = facts.get("distances" if table == "head_distances" else "parameters", {})
        one = found[0]
        if one is None or any(other != one for other in found[1:]):
            dropped.append(table)
        elif table in facts.get("tables", ()) and one == dict(planned):
            kept.append(table)
        else:
            added[table] = one
    return Places(tuple(kept), added, tuple(dropped), without)
