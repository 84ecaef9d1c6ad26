"""This file publishes segments, additions and snapshots: whole or absent, never changed, without a lock.

A unit is written in a staging folder, synced, and renamed; renaming onto a folder that another writer
has published fails, and the loser drops its copy. A snapshot is linked under the next free number.
"""

import errno
import functools
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import google_crc32c

from attnstore.errors import Damaged, NotAStore, NotFound
from attnstore.format import names
from attnstore.format.manifest import (
    File,
    Reference,
    Snapshot,
    Unit,
    read_snapshot,
    snapshot_to_json,
    unit_to_json,
)
from attnstore.format.remote import Place, Remote

_BLOCK = 2**20


def stage(root: Path, folder: str) -> Path:
    """A new empty staging folder beside where `folder` (such as segments/000003) will be published."""
    parent, _, name = folder.rpartition("/")
    path = root / parent / f"{names.STAGING}{name}-{secrets.token_hex(4)}"
    path.mkdir(parents=True)
    return path


def seal(
    staging: Path, folder: str, facts: Mapping[str, object], rows: Mapping[str, int], hashed: Iterable[File] = ()
) -> Unit:
    """Write the manifest of a staged unit over all its files, and sync everything to disk.

    `hashed` are files whose checksums are known from writing them; the others are read.
    """
    paths = sorted(path for path in staging.rglob("*") if path.is_file())
    known = {file.path: file for file in hashed}
    names_of = ((path, path.relative_to(staging).as_posix()) for path in paths)
    files = tuple(known.get(name) or describe(path, name) for path, name in names_of)
    unit = Unit(folder.rpartition("/")[2], folder, facts, rows, files)
    manifest = names.SEGMENT if unit.is_segment else names.ADDITION
    write(staging / manifest, unit_to_json(unit))
    for place in (*paths, *(path for path in staging.rglob("*") if path.is_dir()), staging):
        sync(place)
    return unit


def publish(staging: Path, root: Path, folder: str) -> bool:
    """Rename a sealed unit into place. False, and the copy is dropped, where another writer was first."""
    final = root / folder
    try:
        # An empty folder would be replaced by rename: nobody but an accident makes one, so drop it.
        staging.rename(final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(staging, ignore_errors=True)
        return False
    sync(final.parent)
    sync(root)  # which holds `segments` or `additions` itself
    return True


def describe(path: Path, name: str) -> File:
    """Size and checksums of a file, read once."""
    digest, crc, size = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            crc = google_crc32c.extend(crc, block)
            size += len(block)
    return File(name, size, digest.hexdigest(), f"{crc:08x}")


def write(path: Path, data: bytes) -> None:
    """Write a file and sync it."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_once(path: Path, data: bytes) -> bool:
    """Create `path` with `data`, whole or not at all; False where it exists already."""
    make_folder(path.parent)
    staging = path.parent / f"{names.STAGING}{path.name}-{secrets.token_hex(4)}"
    try:
        write(staging, data)
        os.link(staging, path)
    except FileExistsError:
        return False
    finally:
        staging.unlink(missing_ok=True)
    sync(path.parent)
    return True


def make_folder(path: Path) -> None:
    """Make a folder and those above it that are missing, and sync their names.

    The name of one that is there is synced too: whoever made it may have been killed before that.
    """
    new = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in new or [path]:
        with suppress(PermissionError):  # a folder that may be passed through and not listed
            sync(place.parent)


def published(root: Path, folder: str) -> list[str]:
    """Names of the units published in `segments` or `additions`, in order; a folder of another name is none."""
    place = root / folder
    if not place.is_dir():
        return []
    manifest = names.SEGMENT if folder == names.SEGMENTS else names.ADDITION
    is_name = names.is_segment_name if folder == names.SEGMENTS else names.is_identifier
    # Names and not Paths: a large store has thousands, and a run lists them again and again.
    return sorted(name for name in os.listdir(place) if is_name(name) and os.path.isfile(f"{place}/{name}/{manifest}"))


def in_work(root: Path, folder: str) -> set[str]:
    """Names of units that some writer is staging: a hint which to leave to it, never a lock."""
    place = root / folder
    if not place.is_dir():
        return set()
    staged = (name for name in os.listdir(place) if name.startswith(names.STAGING))
    return {name.removeprefix(names.STAGING).rpartition("-")[0] for name in staged}


def snapshots(root: Place) -> list[int]:
    """Numbers of the snapshots of a store, ascending; behind an address those that it tells."""
    place = root / names.SNAPSHOTS
    if isinstance(place, Path) and not place.is_dir():
        return []
    found = place.names() if isinstance(place, Remote) else os.listdir(place)
    return sorted(number for name in found if (number := names.snapshot_number(name)) is not None)


def latest(root: Place, number: int | None = None) -> Snapshot:
    """Snapshot `number` of the store, or its newest. NotAStore while there is none, NotFound for an unknown number."""
    numbers = snapshots(root)
    if not numbers:
        raise NotAStore(
            f"opening {root}", "no snapshot yet", remedy="The ingest did not get that far: run the same command again"
        )
    if number is not None and number not in numbers:
        raise NotFound(f"opening {root}", f"no snapshot {number}", f"one of {numbers[0]} to {numbers[-1]}")
    wanted = numbers[-1] if number is None else number
    try:
        found = read_snapshot(root / names.SNAPSHOTS / names.snapshot_name(wanted))
    except Damaged:
        if number is None and snapshots(root)[-1:] != [wanted]:
            return latest(root)  # a newer one came meanwhile, and the one that was listed was collected
        raise
    if found.number != wanted:
        raise Damaged(f"opening {root}", f"snapshot {wanted} says that it is {found.number}", remedy="Fetch it again")
    if found.content_hash != content_hash((*found.segments, *found.additions)):
        raise Damaged(f"opening {root}", f"snapshot {wanted} does not match its own hash", remedy="Fetch it again")
    return found


def content_hash(references: Iterable[Reference]) -> str:
    """sha256 over the sorted manifest hashes: equal maps give one hash, however the work was cut among writers."""
    return hashlib.sha256("\n".join(sorted(r.sha256 for r in references)).encode()).hexdigest()


def commit(root: Path, store_id: str, dropping: Collection[str] = ()) -> Snapshot:
    """Create the snapshot of all that is published now; the newest one, if it says the same already.

    Additions in `dropping` are left out of it and of all that follow, as are those that the newest snapshot leaves
    out. Since a number is given once, what a commit leaves out is what the snapshot before it does: so an addition
    that was dropped is never listed again by a commit that began earlier, and may be removed.
    """
    while True:
        newest = latest(root) if snapshots(root) else None
        left_out = {*dropping, *(newest.dropped if newest else ())}
        segments, there = (_references(root, folder) for folder in (names.SEGMENTS, names.ADDITIONS))
        additions = tuple(reference for reference in there if reference.id not in left_out)
        # Whoever published these may have been killed, or not have come, between a change of names and its sync: what
        # a snapshot says, and that it is there, must last from here on.
        for place in (root, *(root / name for name in (names.SEGMENTS, names.ADDITIONS, names.SNAPSHOTS))):
            if place.is_dir():
                sync(place)
        pinned = content_hash((*segments, *additions))
        if newest is not None and newest.content_hash == pinned:
            return newest
        number = newest.number + 1 if newest else 1
        snapshot = Snapshot(
            number,
            newest.number if newest else None,
            store_id,
            segments,
            additions,
            pinned,
            time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            tools(),
            _hash_of(root / names.STORE),
            tuple(reference.id for reference in there if reference.id in left_out),
        )
        if write_once(root / names.SNAPSHOTS / names.snapshot_name(number), snapshot_to_json(snapshot)):
            return snapshot


def tools() -> dict[str, str]:
    """Versions of the packages that made what is being written, those that are installed."""
    return dict(_versions())


@functools.cache  # reading them takes ten milliseconds, and every answer names them
def _versions() -> dict[str, str]:
    found = {}
    for package in ("attnstore", "zarr", "numcodecs", "pyarrow", "duckdb", "torch", "transformers", "spacy", "zarrs"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _hash_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _references(root: Path, folder: str) -> tuple[Reference, ...]:
    manifest = names.SEGMENT if folder == names.SEGMENTS else names.ADDITION
    found = []
    for name in published(root, folder):
        with suppress(FileNotFoundError):  # dropped by a newer snapshot and collected meanwhile
            found.append(Reference(name, hashlib.sha256((root / folder / name / manifest).read_bytes()).hexdigest()))
    return tuple(found)


def sync(path: Path) -> None:
    """Sync a file or folder to disk; of a folder, which names are in it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
