"""This file describes the tokens along the axes of one map, which is all that a reduction may know."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Axis:
    """The tokens along one axis of a map, each array [token].

    `special`: any special token of the tokenizer; `cls`, `sep`: that one; `punct`: exactly "." or ",";
    `word`: the index of the token's word, -1 for none. Tokens of one word are neighbours.
    """

    special: BoolArray
    cls: BoolArray
    sep: BoolArray
    punct: BoolArray
    word: IntArray
    n_words: int

    def __len__(self) -> int:
        return len(self.special)


@dataclass(frozen=True, slots=True)
class Frame:
    """Both axes of a map [head, query, key]; `causal` says that a query sees only itself and what precedes it.

    `queries is keys` in self-attention; statistics of offsets exist only there.
    """

    queries: Axis
    keys: Axis
    causal: bool = False

    @property
    def is_self(self) -> bool:
        return self.queries is self.keys
