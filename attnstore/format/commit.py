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
from collections.abc import Iterable, Mapping
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
        _sync(place)
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
    _sync(final.parent)
    _sync(root)  # which holds `segments` or `additions` itself
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
    is_new = not path.parent.is_dir()
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.parent / f"{names.STAGING}{path.name}-{secrets.token_hex(4)}"
    write(staging, data)
    try:
        os.link(staging, path)
    except FileExistsError:
        return False
    finally:
        staging.unlink()
    _sync(path.parent)
    if is_new:
        _sync(path.parent.parent)
    return True


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
    """Snapshot `number` of the store, or its newest. NotAStore while there is none."""
    numbers = snapshots(root)
    if not numbers:
        raise NotAStore(
            f"opening {root}", "no snapshot yet", remedy="The ingest did not get that far: run the same command again"
        )
    if number is not None and number not in numbers:
        raise NotFound(f"opening {root}", f"no snapshot {number}", f"one of {numbers[0]} to {numbers[-1]}")
    wanted = numbers[-1] if number is None else number
    found = read_snapshot(root / names.SNAPSHOTS / names.snapshot_name(wanted))
    if found.number != wanted:
        raise Damaged(f"opening {root}", f"snapshot {wanted} says that it is {found.number}", remedy="Fetch it again")
    if found.content_hash != content_hash((*found.segments, *found.additions)):
        raise Damaged(f"opening {root}", f"snapshot {wanted} does not match its own hash", remedy="Fetch it again")
    return found


def content_hash(references: Iterable[Reference]) -> str:
    """sha256 over the sorted manifest hashes: equal maps give one hash, however the work was cut among writers."""
    return hashlib.sha256("\n".join(sorted(r.sha256 for r in references)).encode()).hexdigest()


def commit(root: Path, store_id: str) -> Snapshot:
    """Create the snapshot of all that is published now; the newest one, if it says the same already."""
    while True:
        numbers = snapshots(root)
        newest = latest(root, numbers[-1]) if numbers else None
        segments, additions = (_references(root, folder) for folder in (names.SEGMENTS, names.ADDITIONS))
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


def _references(root: Path, folder: str) -> tuple[Reference, ...]:
    manifest = names.SEGMENT if folder == names.SEGMENTS else names.ADDITION
    return tuple(
        Reference(name, hashlib.sha256((root / folder / name / manifest).read_bytes()).hexdigest())
        for name in published(root, folder)
    )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
