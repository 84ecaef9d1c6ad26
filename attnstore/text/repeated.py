"""This file draws sequences of random tokens, each standing twice in a row: the text on which induction heads show."""

from collections.abc import Iterator

import numpy as np

from attnstore.errors import BadInput
from attnstore.text.example import Example, Token
from attnstore.text.vocabulary import Vocabulary

CONDITION = "repeated_random"
"""The kind of corpus, and the condition of its examples, by which questions tell them from other texts."""


def draw(vocabulary: Vocabulary | None, *, length: int, count: int, seed: int) -> Iterator[Example]:
    """`count` examples of `length` tokens followed by the same `length` tokens; special tokens go round them later.

    A sequence holds no token twice, so that exactly one earlier token is a copy and one token follows that copy (Olsson
    et al. 2022 draw with replacement). All tokens of the vocabulary but the special ones are drawn alike. A larger
    `count` begins with the same sequences. The text is the tokens' symbols with single spaces between them.

    Raises BadInput for a vocabulary with fewer tokens than `length`, and a negative `seed`.
    """
    if vocabulary is None:
        raise BadInput("drawing random tokens", "no vocabulary to draw them from", "that of a model")
    if seed < 0:
        raise BadInput("drawing random tokens", f"corpus.seed = {seed}", "0 or more")
    symbols = [
        symbol for _, symbol in sorted(vocabulary.symbols.items()) if symbol and symbol not in vocabulary.special
    ]
    if len(symbols) < length:
        raise BadInput(
            "drawing random tokens",
            f"a vocabulary of {len(symbols)} tokens beside the special ones",
            f"{length} different tokens for one sequence",
            f"Set corpus.length = {len(symbols)} or less",
        )
    return _drawn(symbols, length, count, seed)


def _drawn(symbols: list[str], length: int, count: int, seed: int) -> Iterator[Example]:
    random = np.random.default_rng(seed)
    for number in range(1, count + 1):
        once = [symbols[place] for place in random.choice(len(symbols), length, replace=False)]
        twice = once + once
        starts = np.cumsum([0, *(len(symbol) + 1 for symbol in twice)]).tolist()
        yield Example(
            f"repeated:{number}",
            " ".join(twice),
            condition=CONDITION,
            tokens=tuple(
                Token(symbol, start, start + len(symbol)) for symbol, start in zip(twice, starts, strict=False)
            ),
            where=f"random sequence {number} of seed {seed}",
        )
