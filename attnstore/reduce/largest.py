"""This file takes the largest weights of every row, and measures what they leave out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput

_SIGN, _KEY = np.uint32(0x7FFFFFFF), np.uint64(32)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest weights of rows: `key` uint32 and `weight` float32 [head, query, place], by descending weight.

    What they leave out of each row [head, query]: `rest` float64, the sum of the other weights, and `next` float32,
    the largest of them; both 0 where nothing is left out.
    """

    key: NDArray[np.uint32]
    weight: NDArray[np.float32]
    rest: NDArray[np.float64]
    next: NDArray[np.float32]


def largest_weights(weights: NDArray[np.float32], n: int, *, causal_from: int | None = None) -> Largest:
    """The `n` largest of each row of `weights` [head, query, key], or all of fewer keys; the lowest key on a tie.

    `causal_from` is the number of the first query where weights on keys after a query are known to be 0. The memory
    needed is 16 B a weight, so that a large map is given in blocks. BadInput for `n` below 1.
    """
    if n < 1:
        raise BadInput("taking the largest weights", f"{n} of a row", "1 or more")
    queries, keys = weights.shape[1:]
    n = min(n, keys)
    seen = keys if causal_from is None else min(keys, max(causal_from + queries, n + 1))
    # Numbers that ascend as weights descend, the key in the low half: no two are equal, so that one selection of the
    # first n settles ties too, and takes the same time whatever the weights. -0 and 0 are one weight.
    falling = _SIGN - (np.ascontiguousarray(weights[:, :, :seen], np.float32).view(np.uint32) & _SIGN)
    order = falling.astype(np.uint64) << _KEY
    order |= np.arange(seen, dtype=np.uint64)
    if n < seen:
        order.partition(n, axis=2)
    best = np.sort(order[:, :, :n], axis=2)
    kept = _weights(best)
    following = _weights(order[:, :, n]) if n < keys else np.zeros(weights.shape[:2], np.float32)
    rest = weights.sum(axis=2, dtype=np.float64) - kept.sum(axis=2, dtype=np.float64)
    # Where all that follows is 0, the two sums differ by their rounding only.
    rest = np.where(following > 0, np.maximum(rest, 0), 0)
    return Largest(best.astype(np.uint32), kept, rest, following)


def _weights(order: NDArray[np.uint64]) -> NDArray[np.float32]:
    return (_SIGN - (order >> _KEY).astype(np.uint32)).view(np.float32)
