"""This file copies a snapshot of a store from behind an address into a folder, whole or not at all.

Units are fetched into staging folders and published as a writer publishes them; then comes the snapshot. What an
interrupted pull left is taken over file by file, if it has the right sha256.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from attnstore.errors import AttnStoreError, BadInput, Damaged
from attnstore.format import names
from attnstore.format.address import is_address
from attnstore.format.commit import describe, latest, publish, snapshots, stage, sync, write, write_once
from attnstore.format.limits import JSON_BYTES
from attnstore.format.manifest import File, Reference, Snapshot, Unit, load, read_store, read_unit
from attnstore.format.remote import REQUESTS, Remote
from attnstore.share.pushing import PAGES, Told, numbered, tag_text, tagged
from attnstore.store.contents import Contents, read_contents

_PAGE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull came to: the number of the snapshot here, what was fetched and what was there already."""

    snapshot: int
    content_hash: str
    fetched: int
    fetched_bytes: int
    kept: int


def pull(
    address: str,
    target: Path,
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    expect: str | None = None,
    told: Told = lambda size: None,
) -> Pulled:
    """Copy a store at an address into the folder `target`, at its newest snapshot or that of `snapshot` or `tag`.

    `target` may be absent, or hold the same store: what is there is kept, and a pull that was interrupted goes on.
    Every file is held against its sha256. The snapshot keeps its number; where another has that here, it gets the next
    free one. BadInput for a target that holds anything else, Damaged for files that are not what they should be, here
    or there; NotFound where the server does not answer.
    """
    if not is_address(address):
        raise BadInput(f"fetching {address}", "no address", "s3://…, hf://… or https://…", "Copy a folder as it is")
    contents = read_contents(address, snapshot=snapshot, tag=tag, expect=expect)
    root = contents.root
    assert isinstance(root, Remote)
    text = (root / names.STORE).read_bytes(JSON_BYTES)
    _prepare(root, target, text)
    if read_store(target) != contents.info:
        raise Damaged(f"fetching {root / names.STORE}", "it changed meanwhile", remedy="Run the same command again")
    pulling = _Pulling(contents, target, told)
    with ThreadPoolExecutor(REQUESTS) as pool:
        references = {one.id: one for one in (*contents.snapshot.segments, *contents.snapshot.additions)}
        for unit in contents.units:
            pulling.unit(unit, references[unit.id], pool)
    number = _publish(contents.snapshot, target)
    _fetch_tags(root, target, contents.snapshot.number, number, contents.snapshot.content_hash)
    for name in PAGES:
        with suppress(AttnStoreError, FileExistsError):  # not every address has them
            write(target / name, (root / name).read_bytes(_PAGE_BYTES))
    done = read_contents(target, snapshot=number)
    if done.snapshot.content_hash != contents.snapshot.content_hash or not done.units:
        raise Damaged(f"fetching {root}", f"snapshot {number} of {target} says something else", "what was fetched")
    return Pulled(number, done.snapshot.content_hash, pulling.fetched, pulling.fetched_bytes, pulling.kept)


def _prepare(root: Remote, target: Path, text: bytes) -> None:
    """Make the folder of the store, or see that it is one of the same store."""
    doing, path = f"fetching {root} into {target}", target / names.STORE
    if target.exists() and not target.is_dir():
        raise BadInput(doing, "a file", "a folder, or none")
    if not path.exists():
        if target.is_dir() and any(not name.startswith(names.STAGING) for name in os.listdir(target)):
            raise BadInput(doing, "a folder of something else", "an empty folder, none, or one of the same store")
        target.mkdir(parents=True, exist_ok=True)
        write_once(path, text)
    if path.read_bytes() != text:
        raise BadInput(doing, "another store there", "an empty folder, none, or one of the same store")


class _Pulling:
    """One pull: what it has fetched so far. Threads share it."""

    def __init__(self, contents: Contents, target: Path, told: Told) -> None:
        self.root, self.target, self.told = contents.root, target, told
        self.fetched, self.fetched_bytes, self.kept = 0, 0, 0
        self._lock = Lock()

    def unit(self, unit: Unit, reference: Reference, pool: ThreadPoolExecutor) -> None:
        """See to it that a unit is there; Damaged where one of its name is, and is not the same."""
        assert isinstance(self.root, Remote)
        final = self.target / unit.folder
        if not final.exists():
            manifest = self.root / unit.folder / (names.SEGMENT if unit.is_segment else names.ADDITION)
            text = manifest.read_bytes(JSON_BYTES)
            if hashlib.sha256(text).hexdigest() != reference.sha256:
                raise Damaged(f"reading {manifest}", "it changed meanwhile", remedy="Run the same command again")
            left, staging = self._left(unit), stage(self.target, unit.folder)
            try:
                list(pool.map(lambda file: self._file(unit, file, staging, left), unit.files))
                write(staging / manifest.path.rpartition("/")[2], text)
                for place in (*(path for path in staging.rglob("*") if path.is_dir()), staging):
                    sync(place)
                is_ours = publish(staging, self.target, unit.folder)
            except FileNotFoundError:
                if not final.exists():
                    raise
                is_ours = False  # another pull published the unit and dropped what it had taken over from here
            if is_ours:
                for folder in left:
                    shutil.rmtree(folder, ignore_errors=True)
                return
        remedy = f"Remove {final} and fetch again, or fetch into another folder"
        try:
            read_unit(self.target, unit.folder, reference.sha256)
            for file in unit.files:
                _check(final / file.path, file)
        except Damaged as error:
            raise Damaged(error.doing, error.found, error.expected, remedy) from error
        self._count(unit.files, 0)

    def _left(self, unit: Unit) -> list[Path]:
        """What earlier pulls staged of a unit and did not publish."""
        top, _, name = unit.folder.rpartition("/")
        return sorted((self.target / top).glob(f"{names.STAGING}{name}-*"))

    def _file(self, unit: Unit, file: File, staging: Path, left: Sequence[Path]) -> None:
        assert isinstance(self.root, Remote)
        path = staging / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in left:
            with suppress(Damaged, OSError):
                _check(folder / file.path, file)
                # A second name, and not a move: whoever staged it may be at work still.
                os.link(folder / file.path, path)
                self._count([file], 0)
                return
        with path.open("xb") as opened:
            (self.root / unit.folder / file.path).copy_to(opened, file.bytes, file.sha256)
            opened.flush()
            os.fsync(opened.fileno())
        self._count([file], 1)

    def _count(self, files: Sequence[File], fetched: int) -> None:
        with self._lock:
            size = sum(file.bytes for file in files)
            self.fetched += fetched
            self.fetched_bytes += size * fetched
            self.kept += len(files) * (1 - fetched)
            self.told(size)


def _check(path: Path, file: File) -> None:
    """Damaged unless a file is a regular one with the size and sha256 that its manifest states."""
    if path.is_symlink() or not path.is_file():
        raise Damaged(f"reading {path}", "no regular file there", f"a file of {file.bytes} bytes")
    if path.stat().st_size != file.bytes or describe(path, file.path).sha256 != file.sha256:
        raise Damaged(f"reading {path}", "other bytes", f"{file.bytes} with sha256 {file.sha256[:16]}…")


def _publish(snapshot: Snapshot, target: Path) -> int:
    """Create the snapshot here under its own number, or the next free one; the number of that with this content."""
    number, parent = snapshot.number, snapshot.parent
    while True:
        if write_once(target / names.SNAPSHOTS / names.snapshot_name(number), numbered(snapshot, number, parent)):
            return number
        if latest(target, number).content_hash == snapshot.content_hash:
            return number
        newest = snapshots(target)[-1]
        if latest(target, newest).content_hash == snapshot.content_hash:
            return newest
        number, parent = newest + 1, newest


def _fetch_tags(root: Remote, target: Path, there: int, here: int, content_hash: str) -> None:
    """Create the tags that name the snapshot; one of that name that is here stays as it is."""
    for name in (root / names.TAGS).names():
        is_tag = name.endswith(".json") and names.is_identifier(name.removesuffix(".json"))
        if is_tag and tagged(load(root / names.TAGS / name)) == there:
            write_once(target / names.TAGS / name, tag_text(here, content_hash))
