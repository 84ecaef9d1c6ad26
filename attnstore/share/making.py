"""This file writes the segments and the store.json of a store that is made from others.

It has the rows that are current in its sources: what was annotated later lies in its segments. Shards of a segment that
is taken as it is are copied as files; of another the codes are moved, and no weight is rounded again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attnstore.format import names
from attnstore.format.commit import publish, seal, stage, write_once
from attnstore.format.fact_tables import MEASURED
from attnstore.format.manifest import File, Kept, PlannedSegment, StoreInfo, dumps, store_to_json
from attnstore.format.parquet import TableWriter
from attnstore.format.tables import TABLES
from attnstore.share.maps_rewrite import Cut, cuts, first_cells, planned_cells, write_maps
from attnstore.share.source import Numbers, Piece, Source, copied
from attnstore.share.table_places import places_of
from attnstore.share.words_hidden import HiddenWords

SEGMENT_TABLES = (*TABLES, *MEASURED, "head_distances")
"""Tables that may lie in a segment, in the order in which they are written."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new store is to be: `info` without plan and id, and the pieces of each of its segments.

    `without` are tables that are left out, `told` what store.json says of that beside the sources.
    """

    target: Path
    doing: str
    sources: Sequence[Source]
    info: StoreInfo
    segments: Sequence[Sequence[Piece]]
    without: frozenset[str] = frozenset()
    hidden: HiddenWords | None = None
    told: Mapping[str, Any] = field(default_factory=dict)


class Making:
    """A store that is being written into the folder `root`."""

    def __init__(self, wanted: Wanted, root: Path) -> None:
        self.wanted, self.root, self.hidden = wanted, root, wanted.hidden
        self.cuts: list[list[dict[str, Cut]]] = [[cuts(piece) for piece in pieces] for pieces in wanted.segments]
        self.places = places_of(wanted.sources, wanted.without)
        self.left_out: list[str] = [*self.places.dropped]
        self.info = self._planned()
        self.chosen = {source.number: self._chosen(source) for source in wanted.sources}

    @property
    def kept(self) -> Kept:
        """Which maps the new store holds."""
        return self.info.kept

    def _planned(self) -> StoreInfo:
        info, planned, number = self.wanted.info, [], 0
        for pieces, own in zip(self.wanted.segments, self.cuts, strict=True):
            first = number
            number += sum(len(piece.examples) for piece in pieces)
            planned.append(PlannedSegment(first, number, planned_cells(own, info.kinds)))
        facts = {**info.facts, "tables": list(self.places.kept)}
        if "head_distances" not in self.places.kept:
            facts.pop("distances", None)
        return replace(info, segments=tuple(planned), facts=facts)

    def _chosen(self, source: Source) -> tuple[Numbers, Numbers]:
        """The examples that are taken of a source, ascending, and the numbers that they get."""
        own = [piece for pieces in self.wanted.segments for piece in pieces if piece.source is source]
        if not own:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([piece.examples for piece in own]), np.concatenate(
            [piece.first + np.arange(len(piece.examples)) for piece in own]
        )

    def is_all(self, source: Source) -> bool:
        """Whether every example of a source is taken."""
        return len(self.chosen[source.number][0]) == source.info.n_examples

    def is_same(self, source: Source) -> bool:
        """Whether the examples of a source keep their numbers."""
        return np.array_equal(*self.chosen[source.number])

    def renumbered(self, table: str, source: Source, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of chosen examples with their new numbers, and without words where these are hidden."""
        place = batch.schema.get_field_index("example")
        if place >= 0:
            old, new = self.chosen[source.number]
            numbers = new[np.searchsorted(old, batch["example"].to_numpy())]
            batch = batch.set_column(place, batch.schema.field(place), pa.array(numbers.astype(np.int32)))
        return batch if self.hidden is None else self.hidden.hide(table, batch)

    def may_copy(self, table: str, source: Source) -> bool:
        """Whether a file of a table that holds whole segments can be copied as it is."""
        return self.is_same(source) and not (self.hidden is not None and self.hidden.touches(table))

    def write_json(self) -> None:
        """Write store.json; after everything else, since what had to be left out is known then."""
        told = dict(self.wanted.told)
        if self.left_out:
            told["left_out"] = {**told.get("left_out", {}), "tables": sorted(set(self.left_out))}
        named = replace(self.info, store_id=self.store_id())
        write_once(self.root / names.STORE, dumps({**json.loads(store_to_json(named)), **told, **self._origins()}))

    def store_id(self) -> str:
        """16 hex digits of the sha256 of what was planned: sources, pieces and what is left out."""
        planned = json.loads(store_to_json(replace(self.info, store_id="")))
        return hashlib.sha256(dumps({**planned, **self.wanted.told, **self._origins()})).hexdigest()[:16]

    def _origins(self) -> dict[str, Any]:
        return {"made_from": [source.origin for source in self.wanted.sources]}

    def write_segment(self, number: int) -> None:
        """Write and publish one segment."""
        pieces, own = self.wanted.segments[number], self.cuts[number]
        folder = f"{names.SEGMENTS}/{names.segment_name(number)}"
        staging = stage(self.root, folder)
        shards = self._write_maps(staging, pieces, own)
        cells, rows = first_cells(own, self.kept), {}
        for table in SEGMENT_TABLES:
            if not self.places.is_in_segments(table):
                continue
            file = self._copy_of(staging, table, pieces, number)
            if file is not None:
                shards.append(file)
                rows[table] = pieces[0].unit.rows[table]
            elif count := self._write_table(staging, table, number, pieces, cells):
                rows[table] = count
        planned = self.info.segments[number]
        seal(staging, folder, {"first": planned.first, "stop": planned.stop}, rows, shards)
        publish(staging, self.root, folder)

    def _write_maps(self, staging: Path, pieces: Sequence[Piece], own: Sequence[Mapping[str, Cut]]) -> list[File]:
        if self.kept.maps == "none":
            return []
        if len(pieces) == 1 and pieces[0].is_whole and pieces[0].source.info.kept == self.kept:
            return copied_maps(pieces[0].source, pieces[0].unit.folder, staging)
        return write_maps(staging, self.info, self.kept, list(zip(pieces, own, strict=True)))

    def _copy_of(self, staging: Path, table: str, pieces: Sequence[Piece], number: int) -> File | None:
        """The file of a table that is copied; None where its rows have to be read."""
        piece, source = pieces[0], pieces[0].source
        if len(pieces) > 1 or not piece.is_whole or not self.may_copy(table, source) or not source.is_own(table):
            return None
        if table == "examples" and (piece.segment != number or source.info.kept != self.kept):
            return None
        if table in MEASURED and source.info.kept != self.kept:
            return None
        name = names.parquet_name(table)
        found = next((file for file in piece.unit.files if file.path == name), None)
        return found and copied(piece.unit, found, source.root, staging / name)

    def _write_table(
        self,
        staging: Path,
        table: str,
        number: int,
        pieces: Sequence[Piece],
        cells: Sequence[Mapping[str, Mapping[int, int]]],
    ) -> int:
        writer = TableWriter(staging, table)
        try:
            for piece, first in zip(pieces, cells, strict=True):
                if table == "skipped" and not self.is_all(piece.source):
                    continue  # what could not be used belongs to no example
                for batch in piece.rows(table):
                    if table == "examples":
                        batch = _placed(batch, number, first)
                    if table in MEASURED:
                        batch = _of_heads(batch, self.kept)
                    writer.append(self.renumbered(table, piece.source, batch))
            return writer.close()
        except BaseException:
            writer.abandon()
            raise


def copied_maps(source: Source, folder: str, staging: Path) -> list[File]:
    """Copy `maps.zarr` of a segment or addition as it is; its files."""
    unit = next(unit for unit in source.store.contents.units if unit.folder == folder)
    files = [file for file in unit.files if file.path.startswith(f"{names.MAPS}/")]
    return [copied(unit, file, source.root, staging / file.path) for file in files]


def _placed(batch: pa.RecordBatch, segment: int, first: Mapping[str, Mapping[int, int]]) -> pa.RecordBatch:
    """Rows of `examples` with the segment that holds them and their first cells in it."""
    examples = batch["example"].to_pylist()
    columns: dict[str, list[int | None]] = {"segment": [segment] * len(examples)}
    columns |= {f"cell_{kind}": [own.get(number) for number in examples] for kind, own in first.items()}
    for name, values in columns.items():
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, batch.schema.field(place), pa.array(values, batch.schema.field(place).type))
    return batch


def _of_heads(batch: pa.RecordBatch, kept: Kept) -> pa.RecordBatch:
    for column, chosen in (("layer", kept.layers), ("head", kept.heads)):
        if chosen is not None:
            batch = batch.filter(pa.array(np.isin(batch[column].to_numpy(), chosen)))
    return batch
