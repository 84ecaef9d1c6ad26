"""This file opens a store: which segments and additions its snapshot lists, and that each of their files is there.

Opening reads store.json and one snapshot. The manifests, of which a large store has thousands, are read and their files
looked at when the first table or map is wanted, and before any of them is read. Of a store behind an address, a file is
looked at when it is fetched.
"""

import os
import stat
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attnstore.errors import BadInput, Damaged, NotAStore
from attnstore.format import names
from attnstore.format.address import check_pinned, is_address, served
from attnstore.format.cache import Cache
from attnstore.format.chosen import chosen
from attnstore.format.manifest import FETCH, File, Reference, Snapshot, StoreInfo, Unit, read_store, read_unit
from attnstore.format.packed import is_package, packed
from attnstore.format.remote import REQUESTS, Place, Remote


class Contents:
    """A store as one snapshot sees it, in a folder or behind an address. Threads may share it."""

    def __init__(self, root: Place, info: StoreInfo, snapshot: Snapshot, cache: Cache | None = None) -> None:
        self.root, self.info, self.snapshot = root, info, snapshot
        self._cache = cache or (Cache() if isinstance(root, Remote) else None)
        self._units: tuple[Unit, ...] | None = None
        self._at: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def units(self) -> tuple[Unit, ...]:
        """The segments, then the additions, in the snapshot's order.

        Read at the first call, which raises Damaged where a manifest is not the one that the snapshot lists, or a file
        is not there with its recorded size.
        """
        with self._lock:
            if self._units is None:
                self._units = tuple(self._checked_units())
                self._at = {unit.folder: number for number, unit in enumerate(self._units)}
            return self._units

    def _checked_units(self) -> Iterator[Unit]:
        self._check_listed()
        listed = [
            (folder, reference)
            for folder, references in (
                (names.SEGMENTS, self.snapshot.segments),
                (names.ADDITIONS, self.snapshot.additions),
            )
            for reference in references
        ]
        if isinstance(self.root, Remote):
            with ThreadPoolExecutor(REQUESTS) as pool:  # a large store has thousands
                yield from pool.map(self._unit, listed)
        else:
            for unit in map(self._unit, listed):
                _check_files(self.root, unit)
                yield unit

    def _check_listed(self) -> None:
        """Every segment once and in the plan, every addition once; Damaged otherwise."""
        doing, planned = f"opening {self.root}", len(self.info.segments)
        for references in (self.snapshot.segments, self.snapshot.additions):
            seen = set[str]()
            for name in (reference.id for reference in references):
                if name in seen:
                    raise Damaged(doing, f"{name} is listed twice", "each segment and addition once", FETCH)
                seen.add(name)
        for reference in self.snapshot.segments:
            if not names.is_segment_name(reference.id) or int(reference.id) >= planned:
                raise Damaged(doing, f"the segment {reference.id}", f"one of {planned} in the plan", FETCH)

    def _unit(self, listed: tuple[str, Reference]) -> Unit:
        folder, reference = listed
        unit = read_unit(self.root, f"{folder}/{reference.id}", reference.sha256)
        if unit.is_segment:
            planned = self.info.segments[int(unit.id)]
            if unit.rows.get("examples", 0) != planned.stop - planned.first:
                found = f"{unit.rows.get('examples', 0)} examples in segment {unit.id}"
                raise Damaged(f"opening {self.root}", found, f"{planned.stop - planned.first}, as planned", FETCH)
        return unit

    @property
    def segments(self) -> tuple[Unit, ...]:
        """The segments, in order."""
        return tuple(unit for unit in self.units if unit.is_segment)

    @property
    def additions(self) -> tuple[Unit, ...]:
        """The additions, the newest last."""
        return tuple(unit for unit in self.units if not unit.is_segment)

    @property
    def folder(self) -> Path:
        """The folder of the store; BadInput where it lies behind an address."""
        if isinstance(self.root, Remote):
            found = "a store behind an address" if is_address(str(self.root)) else "a store in a zip file"
            raise BadInput(f"using {self.root}", found, "a folder", "Copy it here first: attnstore pull or unpack")
        return self.root

    def path(self, unit: Unit, file: File) -> Path:
        """Where a file of a segment or addition lies on this machine, once `fetch` was called."""
        if isinstance(self.root, Remote):
            return self.cache.path(file)
        return self.root / unit.folder / file.path

    @property
    def is_remote(self) -> bool:
        """Whether the store lies behind an address."""
        return isinstance(self.root, Remote)

    def below(self, unit: str, folder: str) -> dict[str, File]:
        """The listed files in `folder` of the segment or addition in the folder `unit`, by their paths below it."""
        units, at = self.units, self._at
        files = units[at[unit]].files if unit in at else ()
        return {file.path.removeprefix(f"{folder}/"): file for file in files if file.path.startswith(f"{folder}/")}

    @property
    def cache(self) -> Cache:
        """Where fetched files are kept; of stores behind an address only."""
        assert self._cache is not None
        return self._cache

    def fetch(self, files: Iterable[tuple[Unit, File]], *, anew: bool = False) -> bool:
        """See to it that these files lie where `path` says; whether any had to be fetched. `anew` fetches them again.

        Does nothing for a store in a folder. Damaged where a file has other bytes than its manifest says, NotFound
        where the server does not answer.
        """
        root, cache = self.root, self._cache
        if not isinstance(root, Remote) or cache is None:
            return False

        def one(wanted: tuple[Unit, File]) -> bool:
            unit, file = wanted
            return cache.fetch(root / unit.folder / file.path, file, anew=anew)

        with ThreadPoolExecutor(REQUESTS) as pool:
            return any(list(pool.map(one, files)))

    @property
    def n_bytes(self) -> int:
        """Bytes of all listed files."""
        return sum(file.bytes for unit in self.units for file in unit.files)


def read_contents(
    path: str | Path, *, snapshot: int | None = None, tag: str | None = None, expect: str | None = None
) -> Contents:
    """The contents of the store in a folder or at an address, at its newest snapshot or that of `snapshot` or `tag`.

    An address leads to one snapshot; NotFound for another. `expect` is the content hash of the snapshot, or its first
    eight digits or more. Raises NotAStore, UnsupportedFormat, NotFound, BadInput, and Damaged where store.json or the
    snapshot is not what it should be. Files are looked at when `units` is first read, or when they are fetched.
    """
    given = served(path) if isinstance(path, str) and is_address(path) else None
    root: Place = given.root if given is not None else packed(Path(path)) if is_package(path) else Path(path)
    if isinstance(root, Path) and not root.is_dir():
        raise NotAStore(
            f"opening {root}", "no folder there", "the folder of a store", "Make one with: attnstore ingest"
        )
    info = read_store(root)
    found = chosen(root, snapshot, tag, expect)
    if given is not None:
        check_pinned(given, found.content_hash)
    if found.store_id != info.store_id:
        raise Damaged(
            f"opening {root}", f"snapshot {found.number} of another store, {found.store_id}", info.store_id, FETCH
        )
    if found.store_sha256 not in (None, info.sha256):
        place = f"reading {root / names.STORE}"
        raise Damaged(place, f"sha256 {info.sha256[:16]}…", f"{str(found.store_sha256)[:16]}…", FETCH)
    return Contents(root, info, found)


def _check_files(root: Path, unit: Unit) -> None:
    # Strings, as a large store has a hundred thousand files and a Path costs more than a look at the disk.
    doing, top = f"opening {root}", f"{root / unit.folder}/"
    folders = {unit.folder, unit.folder.partition("/")[0]}
    for file in unit.files:
        path = top + file.path
        try:
            found = os.lstat(path)
        except OSError:
            raise Damaged(doing, f"{path} is missing", f"a file of {file.bytes} bytes", FETCH) from None
        if not stat.S_ISREG(found.st_mode):
            # A link or a pipe would hand over bytes from outside the store.
            raise Damaged(doing, f"{path} is no regular file", "a regular file", FETCH)
        if found.st_size != file.bytes:
            raise Damaged(doing, f"{path} has {found.st_size} bytes", f"{file.bytes} bytes", FETCH)
        folder = file.path.rpartition("/")[0]
        while folder and f"{unit.folder}/{folder}" not in folders:
            folders.add(f"{unit.folder}/{folder}")
            folder = folder.rpartition("/")[0]
    for place in sorted(folders):
        if os.path.islink(root / place):
            raise Damaged(doing, f"{root / place} is a link", "a folder", FETCH)
