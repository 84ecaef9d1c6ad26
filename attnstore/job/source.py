"""This file says what a run needs of whatever gives the maps: a model, or arrays made elsewhere."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from attnstore.format.manifest import Kind
from attnstore.text.encoded import Encoded
from attnstore.text.example import Example, Skipped

Receive = Callable[[str, int, NDArray[Any]], None]
"""Takes (kind, layer, weights [batch, head, query, key]) as each layer finishes; the weights are let go on return.

They are float32, or codes of the store's precision, rounded where the model runs. The rows are the examples of the
batch that have maps of this kind, in order.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An example that is ready for the model: tokenized, and short enough.

    `cut` is whole, window or truncated; `maps` names the file of ready-made maps, where there is one.
    """

    example: Example
    source: Encoded
    target: Encoded | None = None
    cut: str = "whole"
    maps: Path | None = None

    @property
    def length(self) -> int:
        """Tokens of both sides together, special tokens included."""
        return len(self.source) + (len(self.target) if self.target else 0)

    def cells(self, kind: Kind) -> int:
        """Cells of the map of one head: queries times keys; 0 where a side is missing."""
        sides = {"source": self.source, "target": self.target}
        queries, keys = sides[kind.queries], sides[kind.keys]
        return len(queries) * len(keys) if queries and keys else 0


@dataclass(frozen=True, slots=True)
class Facts:
    """What store.json records of the source of the maps."""

    model: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    kinds: Mapping[str, Kind]
    parser: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """Gives examples, and later their maps."""

    @property
    def facts(self) -> Facts:
        """Known before any weight is loaded."""
        ...

    @property
    def spare_threads(self) -> int:
        """Threads that may reduce and compress while the source gives maps."""
        ...

    def examples(self) -> Iterator[Prepared | Skipped]:
        """The corpus in its own order, from the start at every call."""
        ...

    def annotate(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """The same examples with words where a parser has to add them."""
        ...

    def start(self, sample: Sequence[Prepared]) -> Mapping[str, Any]:
        """Load what capture needs and check it on a few examples; what is to be recorded in the segment."""
        ...

    def capture(self, batch: Sequence[Prepared], receive: Receive) -> None:
        """Run the batch and hand over every layer of every kind, in order."""
        ...


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_allowed() -> int:
    """The processors that this process may use, or the fewer threads that OMP_NUM_THREADS allows."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), int(asked)) if asked.isdecimal() and int(asked) else cores()
