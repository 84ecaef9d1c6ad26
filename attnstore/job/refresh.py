"""This file computes facts of a finished store anew from its maps, with other parameters, and keeps them."""

import secrets
import shutil
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from tqdm import tqdm

from attnstore.errors import NotStored
from attnstore.format import names
from attnstore.format.commit import stage
from attnstore.format.fact_tables import STORED
from attnstore.format.parquet import TableWriter
from attnstore.job.addition import opened, publish_addition
from attnstore.job.hands import hands_for
from attnstore.job.pool import Hands, Pool
from attnstore.store.fact_parameters import fact_parameters
from attnstore.store.facts import FACTS
from attnstore.store.fill import Filling, batches
from attnstore.store.store import Store
from attnstore.store.store import open as open_store


def refresh(
    store: str | Path,
    table: str,
    params: Mapping[str, object] | None = None,
    *,
    workers: int | None = None,
    ray: str | None = None,
) -> str:
    """Compute a fact table from the stored maps and publish it as an addition; its id.

    Questions then read it where its parameters fit. Parameters that are not given are those of the stored table,
    else the defaults. No model is needed. NotFound for an unknown table, BadInput for a parameter that it does not
    take or a store whose ingest has not ended, NotStored where the maps that were kept do not suffice: facts of all
    heads are not replaced by those of the heads whose maps were kept.

    `workers` and `ray` are those of `ingest`: each worker computes a segment at a time, and the addition has the same
    bytes as that of a run alone.
    """
    doing = f"refreshing {table} of {store}"
    with hands_for(workers, ray, "cpu", doing) as hands, opened(Path(store), doing) as found:
        stored = found.engine.files.parameters(table) if table in FACTS else None
        values = fact_parameters(table, params or {}, stored or {}, doing)
        if stored is not None and (found.info.kept.layers, found.info.kept.heads) != (None, None):
            raise NotStored(doing, "the maps of some heads only", "all of them, as in the facts that are there")

        def fill(writers: dict[str, TableWriter]) -> None:
            rows = (
                (batch for part in batches(found.engine, table, values, doing) for batch in part.to_batches())
                if hands is None
                else _spread(hands, found, table, values, doing)
            )
            with closing(rows):  # an error here must not leave workers until it is forgotten
                for batch in rows:
                    writers[table].append(batch)

        what, source = table.replace("_", "-"), {table: "computed from the stored maps"}
        return publish_addition(found, what, [table], source, doing, fill, values)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a worker opens to fill a table: the store at one snapshot."""

    root: Path
    snapshot: int
    table: str
    values: Mapping[str, object]
    doing: str

    def open(self) -> tuple[Store, Filling]:
        """The store, which stays open as long as it is held, and the table that is filled from it."""
        store = open_store(self.root, snapshot=self.snapshot)
        return store, Filling(store.engine, self.table, self.values, self.doing)


@dataclass(slots=True)
class Fill:
    """The rows of one segment, which go through a file: they may be more than fits into memory."""

    segment: int
    folder: Path
    schema: pa.Schema
    examples: int
    file: Path = Path()

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"segment {self.segment}"

    def begin(self) -> None:
        """A new name each time: a worker that was given up may still write."""
        self.file = self.folder / f"{self.segment}-{secrets.token_hex(4)}.arrow"

    def run(self, tools: tuple[Store, Filling]) -> None:
        """Write the rows, batch by batch."""
        _, filling = tools
        with pa.OSFile(str(self.file), "wb") as sink, pa.ipc.new_stream(sink, self.schema) as writer:
            for block in filling.blocks(self.segment):
                writer.write_table(filling.table(block))

    def drop(self) -> None:
        """The folder is removed as a whole."""

    def taken(self) -> Iterator[pa.RecordBatch]:
        """The rows, whose file is then removed."""
        with pa.OSFile(str(self.file), "rb") as source, pa.ipc.open_stream(source) as reader:
            yield from reader
        self.file.unlink()


def _spread(
    hands: Hands, store: Store, table: str, values: Mapping[str, object], doing: str
) -> Generator[pa.RecordBatch]:
    """The rows of a table in the order of the segments, computed by workers."""
    filling = Filling(store.engine, table, values, doing)
    waiting, ready = list(reversed(filling.segments)), dict[int, Fill]()
    total = sum(map(filling.count, waiting))
    root = store.contents.folder.absolute()
    folder = stage(root, f"{names.ADDITIONS}/parts")
    tasks = [Fill(number, folder, STORED[table], filling.count(number)) for number in filling.segments]
    work = Reading(root, store.snapshot.number, table, values, doing)
    try:
        with Pool(hands, work) as pool, tqdm(total=total, desc=table, unit=" examples", disable=None) as bar:
            for task, _ in pool.spread(tasks, len(tasks)):
                bar.update(task.examples)
                ready[task.segment] = task
                while waiting and waiting[-1] in ready:
                    yield from ready.pop(waiting.pop()).taken()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
