"""This file makes stores with mentions of entities, for the tests of questions about coreference."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attnstore.format.manifest import Kind
from attnstore.store.result import Result
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE
from tests.store.making import Made, make_store

FIRST, SECOND = "mention_to_antecedent", "antecedent_to_mention"


def mention(cluster: str, start: int, end: int, head: int, kind: str | None = "nominal") -> dict[str, Any]:
    return {"cluster": cluster, "start_word": start, "end_word": end, "head_word": head, "type": kind}


def opened(place: Path, made: Sequence[Made], kinds: Mapping[str, Kind] | None = None) -> Store:
    return open_store(make_store(place / "s.attn", made, kinds=ONE if kinds is None else kinds, precision="exact"))


def with_mentions(made: Made, mentions: Sequence[Mapping[str, Any]], **columns: Any) -> Made:
    return Made(made.name, made.source, made.maps, made.target, columns, mentions)


def scores(found: Result) -> dict[tuple[str, str], tuple[int, int]]:
    """(correct, n) by direction and type."""
    return {(row["direction"], row["type"]): (row["correct"], row["n"]) for row in found}
