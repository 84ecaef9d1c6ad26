"""This file finds which tokens make up which word along an axis."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import Axis

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The units along one axis of a word map, each array [unit].

    `word`: index of the word, -1 for a token without one; `start`: first token; `count`: tokens.
    """

    word: Index
    start: Index
    count: Index

    def __len__(self) -> int:
        return len(self.word)

    def __getitem__(self, units: slice | Index) -> "Pieces":
        return Pieces(self.word[units], self.start[units], self.count[units])


def pieces_of(axis: Axis, *, specials: bool = False) -> Pieces:
    """The words of `axis` that have tokens, in word order.

    With `specials` also every token that belongs to no word, as a unit of its own, and all in token order.
    BadInput where the tokens of a word are not neighbours, or a word's index is not below `n_words`.
    """
    word = np.asarray(axis.word)
    edge = np.ones(len(word), bool)
    np.not_equal(word[1:], word[:-1], out=edge[1:])
    if specials:
        edge |= word < 0
    start = np.flatnonzero(edge)
    end = np.append(start[1:], len(word))
    units = Pieces(word[start].astype(np.intp), start, end - start)
    words = units[np.flatnonzero(units.word >= 0)]
    if (words.word[1:] <= words.word[:-1]).any():
        words = words[np.argsort(words.word, kind="stable")]
    _check(words, axis.n_words)
    return units if specials else words


def tokens_of(pieces: Pieces) -> tuple[Index, Pieces]:
    """The tokens of all units in turn, and the units as they lie among these tokens."""
    starts = np.cumsum(pieces.count) - pieces.count
    tokens = np.repeat(pieces.start - starts, pieces.count) + np.arange(pieces.count.sum())
    return tokens, Pieces(pieces.word, starts, pieces.count)


def _check(words: Pieces, n_words: int) -> None:
    doing = "merging pieces into words"
    twice = np.flatnonzero(words.word[1:] == words.word[:-1])
    if twice.size:
        raise BadInput(
            doing,
            f"the tokens of word {words.word[twice[0]]} are not neighbours",
            "all tokens of a word in one run",
            "Align again: a token between two pieces of a word belongs to that word.",
        )
    if len(words) and words.word[-1] >= n_words:
        raise BadInput(
            doing,
            f"a token of word {words.word[-1]}, and {n_words} words",
            "word indices from 0 to the number of words, exclusive",
            "Pass the words that the tokens were aligned to.",
        )
