"""This file finds the heads and examples that a filter of Arrow leaves over, without reading the filter itself.

Arrow can tell which fragments of a dataset a filter may match from what is stated of each fragment. The
fragments here are made up: one for each head, one for each group of examples, one for each example. A filter on
nothing but heads or examples needs none of them: Arrow applies it to the table of heads or of examples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


_HEAD_NAMES = {"kind", "layer", "head"}
_MOST_PAIRS = 2**20
"""Heads times examples for which it is found out whether a filter takes them all."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a filter leaves over: heads in order, examples ascending (None for all).

    `decided` where every row of these heads and examples passes it, so that it need not be applied to rows.
    """

    heads: tuple[Head, ...]
    examples: NDArray[np.int64] | None
    decided: bool

    def only(self, heads: frozenset[Head] | None, examples: NDArray[np.int64] | None) -> "Chosen":
        """The same without other heads and examples than these; None for no limit."""
        own = self.heads if heads is None else tuple(head for head in self.heads if head in heads)
        if examples is None or self.examples is None:
            both = self.examples if examples is None else examples
        else:
            both = np.intersect1d(self.examples, examples)
        return Chosen(own, both, self.decided)


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

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return len(self._examples)

    def chosen(self, condition: pc.Expression | None) -> Chosen:
        """What the filter leaves over, and perhaps some heads or examples more."""
        if condition is None:
            return Chosen(self._heads, None, True)
        names = columns_of(condition, CELL_COLUMNS.names)
        if names <= _HEAD_NAMES:
            return Chosen(tuple(self._heads[row] for row in _rows(_table(self._heads), condition)), None, True)
        if names <= {"example"}:
            found = _rows(pa.table({"example": self._examples.astype(np.int32)}), condition)
            return Chosen(self._heads, self._examples[found], True)
        heads, examples = self.heads(condition), self.examples(condition)
        if not names <= _HEAD_NAMES | {"example"}:
            return Chosen(heads, examples, False)
        every = self._examples if examples is None else examples
        n_pairs = len(heads) * len(every)
        decided = n_pairs <= _MOST_PAIRS and len(_rows(_table(heads, every), condition)) == n_pairs
        return Chosen(heads, examples, decided)

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


def _table(heads: Sequence[Head], examples: NDArray[np.int64] | None = None) -> pa.Table:
    """A row for each head, or for each head and example."""
    times = 1 if examples is None else len(examples)
    kinds, layers, numbers = zip(*heads, strict=True) if heads else ((), (), ())
    columns = {
        "kind": pa.array(np.repeat(np.array(kinds, object), times), pa.string()),
        "layer": np.repeat(np.array(layers, np.int16), times),
        "head": np.repeat(np.array(numbers, np.int16), times),
    }
    return pa.table(
        columns if examples is None else {**columns, "example": np.tile(examples.astype(np.int32), len(heads))}
    )


def _rows(table: pa.Table, condition: pc.Expression) -> NDArray[np.int64]:
    """The rows that pass a filter, ascending."""
    numbered = table.append_column("number of the row", pa.array(np.arange(len(table))))
    return np.sort(numbered.filter(condition)["number of the row"].to_numpy())


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
