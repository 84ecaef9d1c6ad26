"""This file checks a store against the rules of docs/format.md and lists those that it breaks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from attnstore.errors import BadInput, Damaged
from attnstore.format import names
from attnstore.format.address import is_address
from attnstore.format.chosen import chosen
from attnstore.format.commit import describe, latest, snapshots
from attnstore.format.deep import check_added_maps, check_maps
from attnstore.format.deep_facts import check_rows
from attnstore.format.fact_tables import STORED
from attnstore.format.manifest import Reference, StoreInfo, Unit, read_store, read_unit
from attnstore.format.parquet import table_faults
from attnstore.format.pins import broken_tags, sound_snapshots
from attnstore.format.tables import ADDED, TABLES


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule: its number in docs/format.md, the file or folder, and what was found there."""

    rule: str
    where: str
    found: str


def verify(
    path: str | Path,
    *,
    deep: bool = False,
    snapshot: int | None = None,
    tag: str | None = None,
    expect: str | None = None,
) -> list[Finding]:
    """The rules that a store breaks; an empty list for a sound one.

    Every byte is hashed that any snapshot lists, or the one that `snapshot` or `tag` names or whose content hash begins
    with `expect`; every snapshot and tag is read. `deep` also decodes every map and holds it against the tables: rows
    must sum to 1 within what the precision allows, no cell may be absent, the largest weights must be those of the
    facts. BadInput for what is no folder; NotAStore, UnsupportedFormat or Damaged where nothing can be listed, NotFound
    without that snapshot.
    """
    root = _folder(path)
    info = read_store(root)
    if not snapshots(root):
        latest(root)  # which says what to do about it
    broken: list[tuple[str, str, str]] = []
    sound = sound_snapshots(root, info, broken)
    broken_tags(root, sound, broken)
    findings = [Finding(*one) for one in dict.fromkeys(broken)]
    if (snapshot, tag, expect) == (None, None, None):
        wanted = [sound[number] for number in sorted(sound, reverse=True)]
    else:
        wanted = [chosen(root, snapshot, tag, expect)]
    planned = {names.segment_name(number): segment for number, segment in enumerate(info.segments)}
    for folder in (names.SEGMENTS, names.ADDITIONS):
        lists = [getattr(one, folder) for one in wanted]
        twice = {name for one in lists for name, n in Counter(reference.id for reference in one).items() if n > 1}
        findings += [Finding("F3", f"{folder}/{name}", "listed twice") for name in sorted(twice)]
        findings += _linked(root, folder)
        for reference in dict.fromkeys(reference for one in lists for reference in one):
            place = f"{folder}/{reference.id}"
            if folder == names.SEGMENTS and reference.id not in planned:
                findings.append(Finding("F3", place, "not in the plan of store.json"))
                continue
            findings += _unit(root, place, reference, info, deep)
    return findings


def _folder(path: str | Path) -> Path:
    if is_address(path) or (not Path(path).is_dir() and Path(path).exists()):
        remedy = "Copy it here and verify that: attnstore pull, or attnstore unpack"
        raise BadInput(f"verifying {path}", "an address or a file", "the folder of a store", remedy)
    return Path(path)


def _linked(root: Path, place: str) -> Iterator[Finding]:
    if (root / place).is_symlink():
        yield Finding("F4", place, "a link, not a folder")


def _unit(root: Path, place: str, reference: Reference, info: StoreInfo, deep: bool) -> Iterator[Finding]:
    manifest = names.SEGMENT if place.startswith(names.SEGMENTS) else names.ADDITION
    path = root / place / manifest
    yield from _linked(root, place)
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
    if any(finding.rule in ("F4", "F5", "F6") for finding in broken):
        return  # what the damaged bytes say is of no interest, and zarr finds chunks by their names, listed or not
    tables = list(_tables(root, unit))
    yield from tables
    if not unit.is_segment:
        for rule, where, found in check_added_maps(root / place, unit, info, deep=deep):
            yield Finding(rule, f"{place}/{where}", found)
    examples = f"{place}/{names.parquet_name('examples')}"
    if unit.is_segment and _has_columns(root / examples):
        try:
            for rule, where, found in check_maps(root / place, unit, info, deep=deep):
                yield Finding(rule, f"{place}/{where}", found)
            if deep and not any(finding.rule == "F7" for finding in tables):
                for rule, where, found in check_rows(root / place, unit, info):
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
        elif file.index_crc32c is not None and (tail := _tail(path)) != file.index_crc32c:
            yield Finding("F5", where, f"an index with crc32c {tail}, {file.index_crc32c} in the manifest")
    for name in sorted({parent for file in unit.files for parent in _parents(file.path)}):
        yield from _linked(root, f"{unit.folder}/{name}")
    listed = {file.path for file in unit.files} | {names.SEGMENT, names.ADDITION}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name not in listed:
            yield Finding("F6", f"{unit.folder}/{name}", "not listed in the manifest")


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4))
        return f"{int.from_bytes(file.read(4), 'little'):08x}"


def _parents(name: str) -> list[str]:
    """Folders above a file of a unit, by their paths below the unit."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


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
    for table in STORED:
        name = names.parquet_name(table)
        if name not in listed:
            continue
        where = f"{unit.folder}/{name}"
        for fault in table_faults(root / unit.folder / name, table, unit.rows.get(table)):
            yield Finding("F7", where, fault)
