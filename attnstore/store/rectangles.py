"""This file groups heads whose maps lie side by side, so that they are read in one go."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

READ_CELLS = 2**22
"""Cells that are read at a time, over layers and heads."""

Head = tuple[str, int, int]
"""Kind, layer and head."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Neighbouring layers that want the same neighbouring heads, read in one go."""

    layer: slice
    head: slice

    @property
    def shape(self) -> tuple[int, int]:
        """How many layers, how many heads."""
        return self.layer.stop - self.layer.start, self.head.stop - self.head.start


def by_kind(heads: Iterable[Head]) -> dict[str, list[tuple[int, int]]]:
    """(layer, head) pairs by kind, in order."""
    found: dict[str, list[tuple[int, int]]] = {}
    for kind, layer, head in heads:
        found.setdefault(kind, []).append((layer, head))
    return found


def rectangles(pairs: Sequence[tuple[int, int]], cells: int, most: int = READ_CELLS) -> Iterator[Rectangle]:
    """Cover (layer, head) pairs by rectangles of at most `most` cells, where each head has `cells`."""
    rows: dict[int, list[slice]] = {}
    for layer, head in sorted(pairs):
        runs = rows.setdefault(layer, [])
        if runs and runs[-1].stop == head:
            runs[-1] = slice(runs[-1].start, head + 1)
        else:
            runs.append(slice(head, head + 1))
    layers = sorted(rows)
    first = 0
    while first < len(layers):
        last = first + 1
        while last < len(layers) and layers[last] == layers[last - 1] + 1 and rows[layers[last]] == rows[layers[first]]:
            last += 1
        for run in rows[layers[first]]:
            width = run.stop - run.start
            n_heads = max(1, min(width, most // max(cells, 1)))
            n_layers = max(1, most // max(cells * n_heads, 1)) if n_heads == width else 1
            for layer in range(layers[first], layers[last - 1] + 1, n_layers):
                layer_run = slice(layer, min(layer + n_layers, layers[last - 1] + 1))
                for head in range(run.start, run.stop, n_heads):
                    yield Rectangle(layer_run, slice(head, min(head + n_heads, run.stop)))
        first = last


def head_numbers(rectangle: Rectangle) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Layer and head of every head of a rectangle, layer-major."""
    n_layers, n_heads = rectangle.shape
    layers = np.arange(rectangle.layer.start, rectangle.layer.stop, dtype=np.int16)
    heads = np.arange(rectangle.head.start, rectangle.head.stop, dtype=np.int16)
    return np.repeat(layers, n_heads), np.tile(heads, n_layers)
