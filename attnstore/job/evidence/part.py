"""This file writes one part of some evidence: a few tables, or arrays beside them, published as one addition."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attnstore.format import names
from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.commit import publish, seal, stage
from attnstore.format.parquet import TableWriter


class Output:
    """The tables and arrays of one part, made when they are first named."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging
        self._tables: dict[str, TableWriter] = {}
        self._maps: MapsWriter | None = None

    def table(self, name: str) -> TableWriter:
        """The table of this name."""
        return self._tables.setdefault(name, TableWriter(self._staging, name))

    def maps(self, specs: Mapping[str, ArraySpec]) -> MapsWriter:
        """The arrays [layer, head, cell] of the part; the same for every call."""
        if self._maps is None:
            self._maps = MapsWriter(self._staging / names.MAPS, specs)
        return self._maps

    def seal(self, folder: str, facts: Mapping[str, object]) -> None:
        """Close all files and write the manifest."""
        rows = {name: count for name, table in self._tables.items() if (count := table.close())}
        seal(self._staging, folder, facts, rows, [] if self._maps is None else self._maps.close())

    def abandon(self) -> None:
        """Close all files; the caller deletes the folder."""
        for abandon in [table.abandon for table in self._tables.values()] + (
            [self._maps.abandon] if self._maps else []
        ):
            with suppress(OSError):  # what is buffered may not fit on the disk either
                abandon()


@dataclass(frozen=True, slots=True)
class Part:
    """A unit of evidence that is there whole or not at all. `scope` is segment, part or store, `name` which one.

    `examples` is how far the progress bar moves.
    """

    scope: str
    name: str
    examples: int
    fill: Callable[[Output], None]


def write_part(root: Path, addition: str, part: Part, facts: Mapping[str, object]) -> None:
    """Fill a part and publish it; another writer's, if that was faster, stays."""
    folder = f"{names.ADDITIONS}/{addition}"
    staging = stage(root, folder)
    output = Output(staging)
    try:
        part.fill(output)
        output.seal(folder, facts)
        publish(staging, root, folder)
    except BaseException:
        output.abandon()
        shutil.rmtree(staging, ignore_errors=True)
        raise
