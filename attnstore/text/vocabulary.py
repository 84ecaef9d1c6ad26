"""This file defines the vocabulary in which the tokens of a corpus are looked up."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Vocabulary:
    """The symbols of a model with their ids.

    `put_round` are those that go round a text by themselves, and padding; `special` are all that the tokenizer calls
    special, the unknown token and masks as well.
    """

    ids: Mapping[str, int]
    put_round: frozenset[str] = frozenset()
    special: frozenset[str] = frozenset()

    @cached_property
    def symbols(self) -> Mapping[int, str]:
        """The symbol of each id."""
        return {number: symbol for symbol, number in self.ids.items()}
