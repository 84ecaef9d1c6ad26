"""This file holds the patterns that a map is compared with: repeated tokens."""

import numpy as np
from numpy.typing import ArrayLike

from attnstore.errors import BadInput
from attnstore.reduce.axes import BoolArray


def duplicate_pattern(ids: ArrayLike) -> BoolArray:
    """Which keys are earlier copies of the query's token: [query, key], strictly lower triangular.

    `ids` are the token numbers [token].
    """
    tokens = np.asarray(ids)
    if tokens.ndim != 1:
        raise BadInput("looking for repeated tokens", f"ids of shape {list(tokens.shape)}", "[token]")
    return np.tril(tokens[:, None] == tokens, k=-1)


def induction_pattern(ids: ArrayLike) -> BoolArray:
    """Which keys follow an earlier copy of the query's token: [query, key], strictly lower triangular.

    `ids` are the token numbers [token]. A token that repeats its neighbour would find itself there; that is
    not an edge.
    """
    pattern = np.zeros_like(duplicates := duplicate_pattern(ids))
    pattern[:, 1:] = duplicates[:, :-1]
    return np.tril(pattern, k=-1)
