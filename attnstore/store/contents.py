"""This file opens a store: which segments and additions its snapshot lists, and that each of their files is there.

Opening reads store.json and one snapshot. The manifests, of which a large store has thousands, are read and their files
looked at when the first table or map is wanted, and before any of them is read.
"""

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format import names
from attnstore.format.commit import latest
from attnstore.format.manifest import FETCH, File, Snapshot, StoreInfo, Unit, load, read_store, read_unit

HASH_DIGITS = 8
"""The shortest prefix of a content hash that `expect` takes."""


class Contents:
    """A store on disk as one snapshot sees it. Threads may share it."""

    def __init__(self, root: Path, info: StoreInfo, snapshot: Snapshot) -> None:
        self.root, self.info, self.snapshot = root, info, snapshot
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
        for folder, references in (
            (names.SEGMENTS, self.snapshot.segments),
            (names.ADDITIONS, self.snapshot.additions),
        ):
            for reference in references:
                unit = read_unit(self.root, f"{folder}/{reference.id}", reference.sha256)
                _check_files(self, unit)
                yield unit

    @property
    def segments(self) -> tuple[Unit, ...]:
        """The segments, in order."""
        return tuple(unit for unit in self.units if unit.is_segment)

    @property
    def additions(self) -> tuple[Unit, ...]:
        """The additions, the newest last."""
        return tuple(unit for unit in self.units if not unit.is_segment)

    def path(self, unit: Unit, file: File | str) -> Path:
        """Where a file of a segment or addition lies."""
        return self.root / unit.folder / (file if isinstance(file, str) else file.path)

    @property
    def n_bytes(self) -> int:
        """Bytes of all listed files."""
        return sum(file.bytes for unit in self.units for file in unit.files)


def read_contents(
    path: str | Path, *, snapshot: int | None = None, tag: str | None = None, expect: str | None = None
) -> Contents:
    """The contents of the store in a folder, at its newest snapshot, or the one that `snapshot` or `tag` names.

    `expect` is the content hash of the snapshot, or its first eight digits or more. Raises NotAStore,
    UnsupportedFormat, NotFound, BadInput, and Damaged where store.json or the snapshot is not what it should be. Files
    are looked at when `units` is first read.
    """
    root = Path(path)
    if not root.is_dir():
        raise NotAStore(
            f"opening {root}", "no folder there", "the folder of a store", "Make one with: attnstore ingest"
        )
    info = read_store(root)
    if tag is not None:
        if snapshot is not None:
            raise BadInput(f"opening {root}", f"both snapshot={snapshot} and tag={tag!r}", "one of them")
        snapshot = _tagged(root, tag)
    found = latest(root, snapshot)
    if found.store_id != info.store_id:
        raise Damaged(
            f"opening {root}", f"snapshot {found.number} of another store, {found.store_id}", info.store_id, FETCH
        )
    if expect is not None:
        _check_hash(root, found, expect)
    return Contents(root, info, found)


def _tagged(root: Path, tag: str) -> int:
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


def _check_hash(root: Path, snapshot: Snapshot, expect: str) -> None:
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


def _check_files(contents: Contents, unit: Unit) -> None:
    # Strings, as a large store has a hundred thousand files and a Path costs more than a look at the disk.
    doing, top = f"opening {contents.root}", f"{contents.root / unit.folder}/"
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
        if os.path.islink(contents.root / place):
            raise Damaged(doing, f"{contents.root / place} is a link", "a folder", FETCH)
