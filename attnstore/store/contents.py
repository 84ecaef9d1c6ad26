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

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format import names
from attnstore.format.address import check_pinned, is_address, served
from attnstore.format.cache import Cache
from attnstore.format.commit import latest
from attnstore.format.manifest import FETCH, File, Reference, Snapshot, StoreInfo, Unit, load, read_store, read_unit
from attnstore.format.remote import REQUESTS, Place, Remote

HASH_DIGITS = 8
"""The shortest prefix of a content hash that `expect` takes."""


class Contents:
    """A store as one snapshot sees it, in a folder or behind an address. Threads may share it."""

    def __init__(self, root: Place, info: StoreInfo, snapshot: Snapshot, cache: Cache | None = None) -> None:
        self.root, self.info, self.snapshot = root, info, snapshot
        self._cache = cache or (Cache() if isinstance(root, Remote) else None)
        self._units: tuple[Unit, ...] | None = None
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
            return self._units

    def _checked_units(self) -> Iterator[Unit]:
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

    def _unit(self, listed: tuple[str, Reference]) -> Unit:
        folder, reference = listed
        return read_unit(self.root, f"{folder}/{reference.id}", reference.sha256)

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
            raise BadInput(f"using {self.root}", "a store behind an address", "a folder", "Copy the store here first")
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
        found = next((one for one in self.units if one.folder == unit), None)
        files = found.files if found else ()
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
    root = Path(path) if given is None else given.root
    if isinstance(root, Path) and not root.is_dir():
        raise NotAStore(
            f"opening {root}", "no folder there", "the folder of a store", "Make one with: attnstore ingest"
        )
    info = read_store(root)
    if tag is not None:
        if snapshot is not None:
            raise BadInput(f"opening {root}", f"both snapshot={snapshot} and tag={tag!r}", "one of them")
        snapshot = _tagged(root, tag)
    found = latest(root, snapshot)
    if given is not None:
        check_pinned(given, found.content_hash)
    if found.store_id != info.store_id:
        raise Damaged(
            f"opening {root}", f"snapshot {found.number} of another store, {found.store_id}", info.store_id, FETCH
        )
    if expect is not None:
        _check_hash(root, found, expect)
    return Contents(root, info, found)


def _tagged(root: Place, tag: str) -> int:
    if isinstance(root, Remote):
        raise NotFound(f"opening {root}", f"no tag {tag!r}", "snapshot= or expect=; an address tells no tags")
    path = root / names.TAGS / f"{names.checked_identifier(f'opening {root} at a tag', tag)}.json"
    if not path.exists():
        known = sorted(place.stem for place in path.parent.glob("*.json")) if path.parent.is_dir() else []
        raise NotFound(
            f"opening {root}", f"no tag {tag!r}", f"one of {', '.join(known)}" if known else "a tag; it has none"
        )
    value = load(path)
    number = value.get("snapshot") if isinstance(value, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise Damaged(f"reading {path}", f"snapshot {number!r}", "the number of a snapshot", FETCH)
    return number


def _check_hash(root: Place, snapshot: Snapshot, expect: str) -> None:
    wanted = expect.strip().lower().removeprefix("sha256:")
    if len(wanted) < HASH_DIGITS or not set(wanted) <= set("0123456789abcdef"):
        raise BadInput(
            f"opening {root}", f"expect={expect!r}", f"{HASH_DIGITS} hexadecimal digits or more of a content hash"
        )
    if not snapshot.content_hash.startswith(wanted):
        raise Damaged(
            f"opening {root}",
            f"snapshot {snapshot.number} has the content hash {snapshot.content_hash}",
            f"one that starts with {wanted}",
            "Pin the snapshot that was meant with snapshot= or tag=, or fetch the store that was cited",
        )


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
