"""This file holds a line of the relation table, with what it says in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from attnstore.serve.pages.dependencies import ASKED, DIRECTIONS, offset_words, plain

MOST = 8
RARE = 30
"""Words below which a relation is rare."""


@dataclass(frozen=True, slots=True)
class Row:
    """How well one head knows one relation in one direction, and how well a fixed offset does. Shares are 0-1.

    `offset` is that of relations/baselines: in words, from the dependent to the governor, whatever the direction.
    """

    relation: str
    n: int
    layer: int
    head: int
    direction: str
    accuracy: float
    baseline: float
    offset: int
    derived: bool

    @property
    def plain(self) -> str:
        """The relation in plain words."""
        return plain(self.relation)

    @property
    def label(self) -> str:
        """The head as papers call it: layer and head from 1."""
        return f"{self.layer + 1}-{self.head + 1}"

    @property
    def gain(self) -> float:
        """How much better the head is than the fixed offset."""
        return self.accuracy - self.baseline

    @property
    def direction_words(self) -> str:
        """Who looks at whom."""
        return DIRECTIONS[self.direction]

    @property
    def asked(self) -> str:
        """When the head counts as right."""
        return ASKED[self.direction]

    @property
    def guessed(self) -> int:
        """The fixed offset as seen from the word that is asked: where the governor is asked, its sign is turned."""
        return self.offset if self.direction == "dep_to_head" else -self.offset

    @property
    def offset_words(self) -> str:
        """What the fixed offset always guesses, seen from the word that is asked."""
        return offset_words(self.guessed)


FIELDS = ("relation", "n", "layer", "head", "direction", "accuracy", "baseline", "offset", "derived")


def rows_of(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of relations/best."""
    return [Row(**{name: row[name] for name in FIELDS}) for row in rows]


def largest_gains(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The relations that heads know best compared with a fixed offset, rare ones left out where others are not rare."""
    found = [row for row in rows_of(rows) if row.relation != "all"]
    enough = min(RARE, max((row.n for row in found), default=0))
    return sorted((row for row in found if row.n >= enough), key=lambda row: -row.gain)[:MOST]
