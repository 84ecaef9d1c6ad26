"""This file checks a store against the rules of docs/format.md and lists those that it breaks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.commit import describe, latest
from attnstore.format.deep import check_added_maps, check_maps
from attnstore.format.fact_tables import STORED
from attnstore.format.manifest import Reference, StoreInfo, Unit, read_store, read_unit
from attnstore.format.tables import ADDED, TABLES


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule: its number in docs/format.md, the file or folder, and what was found there."""

    rule: str
    where: str
    found: str


def verify(path: str | Path, *, deep: bool = False) -> list[Finding]:
    """The rules that the newest snapshot of a store breaks; an empty list for a sound store.

    Every byte is hashed. `deep` also decodes every map: rows must sum to 1 within what the precision
    allows, and no cell may be absent. NotAStore, UnsupportedFormat or Damaged where nothing can be listed.
    """
    root = Path(path)
    info, snapshot = read_store(root), latest(root)
    findings: list[Finding] = []
    if snapshot.store_id != info.store_id:
        findings.append(Finding("F2", names.SNAPSHOTS, f"snapshot of store {snapshot.store_id}, not {info.store_id}"))
    planned = {names.segment_name(number): segment for number, segment in enumerate(info.segments)}
    for folder, references in ((names.SEGMENTS, snapshot.segments), (names.ADDITIONS, snapshot.additions)):
        times = Counter(reference.id for reference in references)
        findings += [Finding("F3", f"{folder}/{name}", "listed twice") for name, n in times.items() if n > 1]
        for reference in dict.fromkeys(references):
            place = f"{folder}/{reference.id}"
            if folder == names.SEGMENTS and reference.id not in planned:
                findings.append(Finding("F3", place, "not in the plan of store.json"))
                continue
            findings += _unit(root, place, reference, info, deep)
    return findings


def _unit(root: Path, place: str, reference: Reference, info: StoreInfo, deep: bool) -> Iterator[Finding]:
    manifest = names.SEGMENT if place.startswith(names.SEGMENTS) else names.ADDITION
    path = root / place / manifest
    if not path.is_file():
        yield Finding("F3", place, f"no {manifest}")
        return
    if describe(path, manifest).sha256 != reference.sha256:
        yield Finding("F3", f"{place}/{manifest}", "not the manifest that the snapshot lists")
        return
    try:
        unit = read_unit(root, place)
    except Damaged as error:
        yield Finding("F3", f"{place}/{manifest}", error.found)
        return
    broken = list(_files(root, unit))
    yield from broken
    if any(finding.rule in ("F4", "F5") for finding in broken):
        return  # what the damaged bytes say is of no interest
    yield from _tables(root, unit)
    if not unit.is_segment:
        for rule, where, found in check_added_maps(root / place, unit, info, deep=deep):
            yield Finding(rule, f"{place}/{where}", found)
    examples = f"{place}/{names.parquet_name('examples')}"
    if unit.is_segment and _has_columns(root / examples):
        try:
            for rule, where, found in check_maps(root / place, unit, info, deep=deep):
                yield Finding(rule, f"{place}/{where}", found)
        except (OSError, ValueError) as error:  # Parquet pages that do not decode
            yield Finding("F7", examples, str(error))


def _files(root: Path, unit: Unit) -> Iterator[Finding]:
    folder = root / unit.folder
    for file in unit.files:
        path, where = folder / file.path, f"{unit.folder}/{file.path}"
        if path.is_symlink() or not path.is_file():
            yield Finding("F4", where, "no regular file there")
        elif path.stat().st_size != file.bytes:
            yield Finding("F4", where, f"{path.stat().st_size} bytes, {file.bytes} in the manifest")
        elif (now := describe(path, file.path)).sha256 != file.sha256 or now.crc32c != file.crc32c:
            yield Finding("F5", where, f"sha256 {now.sha256[:12]}…, {file.sha256[:12]}… in the manifest")
    listed = {file.path for file in unit.files} | {names.SEGMENT, names.ADDITION}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name not in listed:
            yield Finding("F6", f"{unit.folder}/{name}", "not listed in the manifest")


def _has_columns(examples: Path) -> bool:
    """Whether maps can be held against this table; where it is absent, that is a broken rule of its own."""
    if not examples.is_file():
        return True
    try:
        found = pq.read_schema(examples)
    except (OSError, ValueError):
        return False
    needed = [f for f in TABLES["examples"] if f.name in found.names or f.name not in ADDED["examples"]]
    return all(f.name in found.names and found.field(f.name).type == f.type for f in needed)


def _tables(root: Path, unit: Unit) -> Iterator[Finding]:
    listed = {file.path for file in unit.files}
    for table, rows in unit.rows.items():
        if names.parquet_name(table) not in listed:
            yield Finding("F7", unit.folder, f"{rows} rows of {table} and no {names.parquet_name(table)}")
    for table, schema in STORED.items():
        name = names.parquet_name(table)
        if name not in listed:
            continue
        where = f"{unit.folder}/{name}"
        try:
            file = pq.ParquetFile(root / unit.folder / name, page_checksum_verification=True)
        except (OSError, ValueError) as error:
            yield Finding("F7", where, f"no readable Parquet file ({error})")
            continue
        with file:
            found = file.schema_arrow
            for field in schema:
                if field.name not in found.names:
                    if field.name in ADDED.get(table, ()):
                        continue
                    yield Finding("F7", where, f"no column {field.name}")
                elif found.field(field.name).type != field.type:
                    yield Finding("F7", where, f"{field.name} is {found.field(field.name).type}, not {field.type}")
            if file.metadata.num_rows != unit.rows.get(table):
                yield Finding("F7", where, f"{file.metadata.num_rows} rows, {unit.rows.get(table)} in the manifest")
