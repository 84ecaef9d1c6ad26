"""This file writes the additions of a new store: facts with other parameters, patterns, and evidence of the model."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnstore.format import names
from attnstore.format.commit import publish, seal, stage
from attnstore.format.declared import open_array
from attnstore.format.fact_tables import GIVEN, STORED
from attnstore.format.manifest import File, Unit, dumps
from attnstore.format.parquet import TableWriter
from attnstore.share.making import Making, copied_maps
from attnstore.share.maps_rewrite import write_added_maps
from attnstore.share.source import Source, copied, table_rows
from attnstore.share.words_hidden import without_words

OF_ALL_EXAMPLES = "ablations"
"""Evidence that was made over all examples of a store together: of others it says nothing."""


def write_additions(making: Making) -> None:
    """Write what does not lie in segments. What cannot be carried is noted in `making.left_out`."""
    for table, parameters in making.places.added.items():
        _write(making, f"000001-{table.replace('_', '-')}", [table], {"scope": "store", "parameters": parameters})
    for table in GIVEN:
        if any(source.files.sources[table] for source in making.wanted.sources) and table not in making.wanted.without:
            _write(making, f"000001-{table.replace('_', '-')}", [table], {"scope": "store"})
    for evidence in _kinds(making):
        if not _is_carried(making, evidence):
            making.left_out.append(evidence)
        elif evidence in names.ADDED_MAPS:
            _write_maps(making, evidence)
        else:
            for source in making.wanted.sources:
                for unit in _units(source, evidence):
                    _write_unit(making, source, unit)


def _kinds(making: Making) -> list[str]:
    found = (
        unit.facts["evidence"]
        for source in making.wanted.sources
        for unit in source.store.contents.additions
        if "evidence" in unit.facts
    )
    return [str(name) for name in dict.fromkeys(found)]


def _units(source: Source, evidence: str) -> list[Unit]:
    return [unit for unit in source.store.contents.additions if unit.facts.get("evidence") == evidence]


def _is_carried(making: Making, evidence: str) -> bool:
    """Whether all sources have this evidence, made alike, and it is still true of the examples that are taken."""
    sources = making.wanted.sources
    made = {dumps(unit.facts.get("parameters", {})) for source in sources for unit in _units(source, evidence)}
    if len(made) != 1 or not all(_units(source, evidence) for source in sources):
        return False
    return evidence != OF_ALL_EXAMPLES or (len(sources) == 1 and making.is_all(sources[0]))


def _told(making: Making, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says, without file names, labels and questions where words are hidden."""
    if making.hidden is None or "evidence" not in facts:
        return dict(facts)
    return {**facts, "parameters": without_words(facts.get("parameters", {}))}


def _write(making: Making, name: str, tables: Iterable[str], facts: Mapping[str, Any]) -> None:
    """An addition of scope `store` with the current rows of all sources."""
    folder = f"{names.ADDITIONS}/{name}"
    staging, rows = stage(making.root, folder), {}
    for table in tables:
        batches = (
            making.renumbered(table, source, batch)
            for source in making.wanted.sources
            for batch in source.rows(table, making.chosen[source.number][0])
        )
        rows[table] = _filled(staging, table, batches)
    seal(staging, folder, {**facts, "source": {table: "carried" for table in rows}, "replaces": sorted(rows)}, rows)
    publish(staging, making.root, folder)


def _filled(staging: Path, table: str, batches: Iterable[pa.RecordBatch]) -> int:
    writer = TableWriter(staging, table)
    try:
        for batch in batches:
            writer.append(batch)
        count = writer.close()
    except BaseException:
        writer.abandon()
        raise
    if not count:
        pq.write_table(STORED[table].empty_table(), staging / names.parquet_name(table))
    return count


def _current(source: Source, unit: Unit, making: Making) -> Iterator[tuple[str, File]]:
    """The tables of an addition that no later one replaced."""
    for table, found in source.files.sources.items():
        for other, file in found:
            if other.id == unit.id and other.folder == unit.folder and table not in making.wanted.without:
                yield table, file


def _write_unit(making: Making, source: Source, unit: Unit) -> None:
    """Carry tables of one addition of evidence."""
    is_first = source is making.wanted.sources[0]
    several = len(making.wanted.sources) > 1
    tables = [
        (table, file)
        for table, file in _current(source, unit, making)
        if "example" in STORED[table].names or is_first  # what tells of the model alone, all sources have alike
    ]
    if not tables:
        return
    folder = f"{names.ADDITIONS}/{f'{source.number}.' if several else ''}{unit.id}"
    staging, rows, files = stage(making.root, folder), {}, []
    for table, file in tables:
        if making.may_copy(table, source) and making.is_all(source):
            files.append(copied(unit, file, source.root, staging / file.path))
            rows[table] = unit.rows[table]
            continue
        examples = making.chosen[source.number][0] if "example" in STORED[table].names else None
        found = table_rows(source.store.contents.path(unit, file), STORED[table], examples)
        rows[table] = _filled(staging, table, (making.renumbered(table, source, batch) for batch in found))
    facts = _told(making, unit.facts)
    scope = str(facts.get("scope"))
    if scope != "store":
        # Segments are cut anew: what was one segment's is a part of its own.
        part = facts.pop(scope)
        facts |= {"scope": "part", "part": f"{source.number}.{part}" if several else part}
    seal(staging, folder, facts, rows, files)
    publish(staging, making.root, folder)


def _write_maps(making: Making, evidence: str) -> None:
    """Carry evidence with arrays: an addition for each segment, with its arrays and tables."""
    suffix, kept = names.ADDED_MAPS[evidence], making.kept
    has_arrays = kept.maps == "all" and kept.layers is None and kept.heads is None
    for number, pieces in enumerate(making.wanted.segments):
        units = [_of_segment(piece.source, evidence, piece.segment) for piece in pieces]
        tables = sorted({table for unit in units if unit for table in unit.rows} - making.wanted.without)
        if None in units or not (has_arrays or tables):
            making.left_out.append(evidence)
            continue
        if not has_arrays:
            making.left_out.append(evidence)
        folder = f"{names.ADDITIONS}/{evidence.replace('_', '-')}.{names.segment_name(number)}"
        staging, files = stage(making.root, folder), []
        source = pieces[0].source
        if has_arrays and len(pieces) == 1 and pieces[0].is_whole and units[0] is not None:
            files = copied_maps(source, units[0].folder, staging)
        elif has_arrays and units[0] is not None:
            array = open_array(source.root / units[0].folder, f"{next(iter(source.info.kinds))}_{suffix}")
            own = list(zip(pieces, making.cuts[number], strict=True))
            files = write_added_maps(staging, making.info, suffix, str(array.attrs.get("formula", "")), own)
        rows = {
            table: _filled(
                staging,
                table,
                (making.renumbered(table, piece.source, batch) for piece in pieces for batch in piece.rows(table)),
            )
            for table in tables
        }
        facts = {"scope": "segment", "segment": names.segment_name(number), "evidence": evidence}
        facts = _told(making, {**facts, "parameters": (units[0] or pieces[0].unit).facts.get("parameters", {})})
        if not has_arrays:
            del facts["evidence"]
        seal(staging, folder, facts, rows, files)
        publish(staging, making.root, folder)


def _of_segment(source: Source, evidence: str, segment: int) -> Unit | None:
    name = names.segment_name(segment)
    return next((unit for unit in _units(source, evidence) if unit.facts.get("segment") == name), None)
