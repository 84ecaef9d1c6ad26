"""This file reads the cells of an array in order, a block ahead: examples are often shorter than a chunk."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from attnstore.format.arrays import read_cells

Codes = NDArray[Any]

Read = Callable[[slice, slice, slice], Codes]
"""Reads codes [layer, head, cell]; `read_cells` where none is given."""


class Ahead:
    """Reads of one array that go forward. Holds one block of at most `most` cells over all heads, or the last read.

    A chunk would otherwise be decoded once for every example in it.
    """

    def __init__(self, array: "zarr.Array[Any]", most: int, read: Read | None = None) -> None:
        self._array, self._most = array, most
        self._read: Read = partial(read_cells, array) if read is None else read
        self._place: tuple[int, tuple[int, ...]] = (-1, ())
        self._start = 0
        self._codes: Codes = np.empty((0, 0))

    def read(self, layer: int, heads: Sequence[int], start: int, stop: int) -> Codes:
        """Codes [head, cell] of `heads`, ascending, and cells `start` to `stop` (exclusive). Raises as zarr does."""
        place = (layer, tuple(heads))
        if place != self._place or not self._start <= start <= stop <= self._start + self._codes.shape[1]:
            end = min(self._array.shape[2], max(stop, start + self._most // len(heads)))
            try:
                codes = self._fetch(layer, heads, start, end)
            except Exception:  # damage further on is not the damage of these cells
                codes = self._fetch(layer, heads, start, stop)
            self._place, self._start, self._codes = place, start, codes
        return self._codes[:, start - self._start : stop - self._start]

    def _fetch(self, layer: int, heads: Sequence[int], start: int, stop: int) -> Codes:
        codes = self._read(slice(layer, layer + 1), slice(heads[0], heads[-1] + 1), slice(start, stop))
        return codes[0, [head - heads[0] for head in heads]]
