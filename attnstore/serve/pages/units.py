"""This file says what the rows and columns of a map stand for: tokens and words of an example, and the one in focus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnstore.serve.pages.dependencies import plain
from attnstore.serve.pages.sentence import Focus, Unit, Weights
from attnstore.serve.pages.state import address

Rows = Sequence[Mapping[str, Any]]
Side = Literal["query", "key"]
SHADES = 9
"""Steps of the shade behind a word, from 0."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where words stand: the text of queries and of keys, the units chosen, and the page's address."""

    queries: str
    keys: str
    level: str
    specials: bool
    path: str
    state: Mapping[str, object]

    @property
    def is_self(self) -> bool:
        """Whether queries and keys are one text."""
        return self.queries == self.keys

    def text(self, side: Side) -> str:
        """source or target."""
        return self.queries if side == "query" else self.keys

    def href(self, word: str, side: Side) -> str:
        """The address with this word in focus."""
        named = "key" if side == "key" and not self.is_self else None
        return address(self.path, self.state, word=word, side=named)

    def kept_focus(self, tokens: Rows, word: str, side: str) -> str | None:
        """The word in focus as its first token, t7, which holds at both levels."""
        if not word or word.startswith("t") or self.level == "token":
            return f"t{word.removeprefix('t')}" if word else None
        of = self.text("key" if side == "key" else "query")
        first = [row["token"] for row in tokens if row["side"] == of and row["word"] == int(word)]
        return f"t{first[0]}" if first else None


def units_of(tokens: Rows, labels: Sequence[str], place: Place, side: Side) -> list[Unit]:
    """The units along an axis of the map, whose labels are given: as store.attention chooses them."""
    mine = [row for row in tokens if row["side"] == place.text(side)]
    pairs: list[tuple[int | None, int | None]]  # first token, word
    if place.level == "token":
        pairs = [(row["token"], row["word"]) for row in mine if place.specials or row["special"] is None]
    elif place.specials:
        pairs = []
        before: int | None = None
        for row in mine:
            if row["word"] is None or row["word"] != before:
                pairs.append((row["token"], row["word"]))
            before = row["word"]
    else:
        first: dict[int, int] = {}
        for row in mine:
            if row["word"] is not None:
                first.setdefault(row["word"], row["token"])
        pairs = [(first.get(word), word) for word in range(len(labels))]
    units = []
    for label, (token, word) in zip(labels, pairs, strict=True):
        named = str(word) if place.level == "word" and word is not None else f"t{token}"
        units.append(Unit(label, token, word, place.href(named, side)))
    return units


def focus_of(queries: Sequence[Unit], keys: Sequence[Unit], tokens: Rows, place: Place, word: str, side: str) -> Focus:
    """Row and column of the word in focus: both where the map is of one text, else that of its side; none for a word
    that is not there, such as a special token that is hidden."""
    if not word:
        return Focus()
    axis: Side = "key" if side == "key" and not place.is_self else "query"
    row = _index(queries, tokens, place, word, "query") if place.is_self or axis == "query" else None
    column = _index(keys, tokens, place, word, "key") if place.is_self or axis == "key" else None
    return Focus(row, column)


def _index(units: Sequence[Unit], tokens: Rows, place: Place, word: str, side: Side) -> int | None:
    number = int(word.removeprefix("t"))
    if place.level == "token":
        wanted = [index for index, unit in enumerate(units) if unit.token == number]
    else:
        of: int | None = number
        if word.startswith("t"):
            mine = (row for row in tokens if row["side"] == place.text(side))
            of = next((row["word"] for row in mine if row["token"] == number), None)
        wanted = [
            index
            for index, unit in enumerate(units)
            if (unit.word == of if of is not None else unit.word is None and unit.token == number)
        ]
    return wanted[0] if wanted else None


@dataclass(frozen=True, slots=True)
class Weighed:
    """One weight in text: from, to, and the number."""

    query: Unit
    key: Unit
    weight: float


def largest(
    weights: Weights,
    queries: Sequence[Unit],
    keys: Sequence[Unit],
    *,
    row: int | None = None,
    column: int | None = None,
    most: int = 8,
) -> list[Weighed]:
    """The largest weights of a row, of a column, or of the map, above 0; ties in order."""
    if row is not None:
        cells = [(row, index) for index in range(len(keys))]
    elif column is not None:
        cells = [(index, column) for index in range(len(queries))]
    else:
        top = np.argsort(-np.nan_to_num(weights), axis=None, kind="stable")[:most]
        cells = [(int(place // weights.shape[1]), int(place % weights.shape[1])) for place in top]
    found = [Weighed(queries[i], keys[j], float(weights[i, j])) for i, j in cells if weights[i, j] > 0]
    return sorted(found, key=lambda one: -one.weight)[:most]


@dataclass(frozen=True, slots=True)
class Arc:
    """An annotated dependency of the word in focus: the other word, in which role, the relation, and both weights."""

    other: str
    href: str
    is_governor: bool
    relation: str
    meaning: str
    to_other: float | None
    from_other: float | None


def arcs(
    weights: Weights, queries: Sequence[Unit], keys: Sequence[Unit], words: Rows, place: Place, focus: Focus
) -> dict[str, Any] | None:
    """The dependencies of the word in focus, governor first; None where nothing is in focus or nothing annotated.

    `relation` is that of the word itself. Weights are given where the map is of words of one text.
    """
    side: Side = "query" if focus.row is not None else "key"
    index = focus.row if side == "query" else focus.column
    if index is None:
        return None
    me = (queries if side == "query" else keys)[index].word
    mine = {row["word"]: row for row in words if row["side"] == place.text(side)}
    if me is None or me not in mine or all(row["deprel"] is None for row in mine.values()):
        return None
    at = {unit.word: position for position, unit in enumerate(queries) if unit.word is not None}
    has_weights = place.is_self and place.level == "word"

    def arc(other: Mapping[str, Any], relation: str | None, is_governor: bool) -> Arc:
        there = at.get(other["word"]) if has_weights else None
        pair = (None, None) if there is None else (float(weights[index, there]), float(weights[there, index]))
        tokens_word = str(other["word"]) if place.level == "word" else None
        first = next((unit for unit in queries if unit.word == other["word"]), None)
        named = tokens_word or (f"t{first.token}" if first is not None else "")
        label = relation or "-"
        return Arc(str(other["form"]), place.href(named, side), is_governor, label, plain(label), *pair)

    own = mine[me]
    found = [arc(mine[own["governor"]], own["deprel"], True)] if own["governor"] in mine else []
    found += [arc(row, row["deprel"], False) for row in mine.values() if row["governor"] == me]
    return {"relation": own["deprel"], "meaning": plain(own["deprel"] or "-"), "form": own["form"], "arcs": found}


@dataclass(frozen=True, slots=True)
class Read:
    """A word of the running text: its label, its address, a shade from 0 to 9, whether it is in focus."""

    label: str
    href: str
    shade: int
    is_focus: bool
    index: int | None
    weight: float | None


def running(
    tokens: Rows,
    words: Rows,
    place: Place,
    seen: tuple[Weights, Sequence[Unit], Sequence[Unit], Focus] | None = None,
) -> list[Read]:
    """The keys as running text, shaded by the weight from the word in focus, else by the mean weight that they get.

    Without a map, the words, or the tokens where there are none.
    """
    if seen is None:
        of = place.text("key")
        labels = [str(row["form"]) for row in words if row["side"] == of]
        labels = labels or [str(row["text"] or row["token"]) for row in tokens if row["side"] == of]
        return [Read(label, "", 0, False, None, None) for label in labels]
    weights, _, keys, focus = seen
    known = np.nan_to_num(weights)
    told = known[focus.row] if focus.row is not None else known.mean(axis=0) if len(known) else np.zeros(len(keys))
    top = float(told.max()) if told.size else 0.0
    return [
        Read(
            unit.label,
            unit.href,
            round(SHADES * float(told[index]) / top) if top > 0 else 0,
            index == focus.column,
            index,
            float(told[index]),
        )
        for index, unit in enumerate(keys)
    ]
