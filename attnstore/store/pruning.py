"""This file finds the heads and examples that a filter of Arrow leaves over, without reading the filter itself.

Arrow can tell which fragments of a dataset a filter may match from what is stated of each fragment. The
fragments here are made up: one for each head, one for each group of examples, one for each example.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
from numpy.typing import NDArray

from attnstore.store.layout import CELL_COLUMNS
from attnstore.store.rectangles import Head

GROUP = 256
"""Examples of one group: a filter costs some microseconds for each group, and for each example of those left over."""


class Pruning:
    """Knows every head (kind, layer, head) and every example (ascending numbers) of a store."""

    def __init__(self, heads: Iterable[Head], examples: NDArray[np.int64]) -> None:
        self._heads, self._examples = tuple(heads), examples
        layer, head = (pc.field(name) for name in ("layer", "head"))
        self._head_catalogue = _catalogue(
            (pc.field("kind") == kind) & (layer == _small(at_layer)) & (head == _small(at_head))
            for kind, at_layer, at_head in self._heads
        )
        example = pc.field("example")
        self._groups = [examples[start : start + GROUP] for start in range(0, len(examples), GROUP)]
        self._group_catalogue = _catalogue(
            (example >= pa.scalar(int(group[0]), pa.int32())) & (example <= pa.scalar(int(group[-1]), pa.int32()))
            for group in self._groups
        )
        self._members: dict[int, ds.FileSystemDataset] = {}

    def heads(self, condition: pc.Expression | None) -> tuple[Head, ...]:
        """The heads that the filter may match, in order."""
        if condition is None:
            return self._heads
        return tuple(self._heads[index] for index in _matching(self._head_catalogue, condition))

    def examples(self, condition: pc.Expression | None) -> NDArray[np.int64] | None:
        """The examples that the filter may match, ascending; None for all."""
        if condition is None or "example" not in str(condition):
            return None
        found = [np.zeros(0, np.int64)]
        for number in _matching(self._group_catalogue, condition):
            if number not in self._members:
                # Two threads may both make it; either will do.
                example = pc.field("example")
                self._members[number] = _catalogue(
                    example == pa.scalar(int(one), pa.int32()) for one in self._groups[number]
                )
            found.append(self._groups[number][_matching(self._members[number], condition)])
        return np.concatenate(found)


def columns_of(condition: pc.Expression | None, names: Iterable[str]) -> set[str]:
    """Those of `names` that a filter mentions, and perhaps some that only look so."""
    text = "" if condition is None else str(condition)
    return {name for name in names if name in text}


def _small(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.int16())


def _catalogue(statements: Iterable[pc.Expression]) -> ds.FileSystemDataset:
    form, place = ds.IpcFileFormat(), fs.LocalFileSystem()
    fragments = [
        form.make_fragment(str(index), filesystem=place, partition_expression=statement)
        for index, statement in enumerate(statements)
    ]
    return ds.FileSystemDataset(fragments, CELL_COLUMNS, form, place)


def _matching(catalogue: ds.FileSystemDataset, condition: pc.Expression) -> list[int]:
    return sorted(int(fragment.path) for fragment in catalogue.get_fragments(filter=condition))
