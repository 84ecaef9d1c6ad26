"""This file replaces everything that tells words: by numbers that were drawn at random and are written nowhere else.

Equal words get the same number, so that statistics stay; which number that is nobody can compute, as no hash is taken.
What is left can still be matched with texts that one has: lengths in characters, parses, frequencies and the maps
themselves are those of the words.
"""

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from attnstore.share.source import Source

KNOWN = ("train", "dev", "validation", "test", "clean", "triggered")
"""Names of splits and conditions that tell nothing of a text."""

EMPTY: Mapping[str, tuple[str, ...]] = {
    "examples": ("text", "second", "target", "origin"),
    "words": ("lemma",),
    "skipped": ("origin",),
    "pattern_labels": ("annotator",),
}
"""Columns that are left empty."""


def _is_known(value: object) -> bool:
    return value in KNOWN


def _never(value: object) -> bool:
    return False


def _same(value: Any) -> Any:
    return value


def _lower(value: Any) -> Any:
    return value.lower()


@dataclass(frozen=True, slots=True)
class _Rule:
    """How one column is hidden: equal values of one `domain` get one number, as `shown`."""

    domain: str
    shown: Callable[[Any, int], Any]
    equal: Callable[[Any], Any] = _same
    stays: Callable[[object], bool] = _never


def _named(word: str) -> Callable[[Any, int], str]:
    return lambda value, number: f"{word} {number}"


def _word(value: str, number: int) -> str:
    # A word without letters and digits stays one: questions tell punctuation so.
    if any(letter.isalpha() or letter.isnumeric() for letter in value):
        return f"w{number}"
    return f"{number:b}".replace("0", ".").replace("1", "-")


def _number(value: int, number: int) -> int:
    return number


_LABEL = _Rule("label", _named("label"))
RULES: Mapping[str, Mapping[str, _Rule]] = {
    "examples": {
        "name": _Rule("name", _named("example")),
        "document": _Rule("document", _named("document")),
        "label": _LABEL,
        "split": _Rule("split", _named("split"), stays=_is_known),
        "pair_id": _Rule("pair", _named("pair")),
        "condition": _Rule("condition", _named("condition"), stays=_is_known),
    },
    "tokens": {
        "text": _Rule("token", lambda value, number: f"t{number}"),
        "token_id": _Rule("token_id", _number),
    },
    "words": {"form": _Rule("word", _word, _lower)},
    "mentions": {"cluster": _Rule("cluster", _named("cluster"))},
    "links": {"relation": _Rule("relation", _named("relation"))},
    "skipped": {"name": _Rule("skipped", _named("skipped")), "reason": _Rule("reason", _named("reason"))},
    "predictions": {"gold": _LABEL, "predicted": _LABEL},
}
"""Columns whose values become numbers. Tags of the annotation (upos, xpos, deprel, type, special) stay."""


class HiddenWords:
    """The numbers of one export. They live in memory, and nothing tells them once it ended."""

    def __init__(self, source: Source, chosen: Callable[[str], Iterable[pa.RecordBatch]]) -> None:
        """`chosen` gives the current rows of a table, of the examples that are exported."""
        found: dict[str, set[Any]] = {}
        for table, rules in RULES.items():
            if not source.files.sources[table]:
                continue
            for batch in chosen(table):
                for column, rule in rules.items():
                    distinct = batch[column].unique().drop_null().to_pylist()
                    found.setdefault(rule.domain, set()).update(map(rule.equal, distinct))
        draw = secrets.SystemRandom()
        self._numbers: dict[str, dict[Any, int]] = {}
        for domain, values in found.items():
            numbers = list(range(len(values)))
            draw.shuffle(numbers)
            self._numbers[domain] = dict(zip(values, numbers, strict=True))

    def touches(self, table: str) -> bool:
        """Whether a table has anything to hide."""
        return table in RULES or table in EMPTY

    def hide(self, table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with numbers in the place of words."""
        for column in EMPTY.get(table, ()):
            place, field = batch.schema.get_field_index(column), batch.schema.field(column)
            batch = batch.set_column(place, field, pa.nulls(batch.num_rows, field.type))
        for column, rule in RULES.get(table, {}).items():
            place, field = batch.schema.get_field_index(column), batch.schema.field(column)
            coded = batch[column].dictionary_encode()
            hidden = [self._hidden(rule, value) for value in coded.dictionary.to_pylist()]
            values = pa.array(hidden, field.type).take(coded.indices)
            batch = batch.set_column(place, field, values)
        return batch

    def _hidden(self, rule: _Rule, value: Any) -> Any:
        return value if rule.stays(value) else rule.shown(value, self._numbers[rule.domain][rule.equal(value)])


SAFE_RECIPE = ("encode", "keep", "words", "model")
"""Tables of a recipe that name no file, column or label of the corpus."""


def without_words(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of evidence with numbers and flags alone, and what kind of task it was."""
    found: dict[str, Any] = {}
    for key, value in facts.items():
        if isinstance(value, Mapping):
            found[key] = without_words(value)
        elif isinstance(value, bool | int | float) or key in ("kind", "targets", "intervention", "plan"):
            found[key] = value
    return found
