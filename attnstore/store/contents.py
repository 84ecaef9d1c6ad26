"""This file opens a store: which segments and additions its snapshot lists, and that each of their files is there."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format import names
from attnstore.format.commit import latest
from attnstore.format.manifest import File, Reference, Snapshot, StoreInfo, Unit, load, read_store, read_unit

HASH_DIGITS = 8
"""The shortest prefix of a content hash that `expect` takes."""

_FETCH = "Fetch the store again, or run: attnstore verify"


@dataclass(frozen=True, slots=True)
class Contents:
    """A store on disk as one snapshot sees it; `units` are its segments, then its additions, in its order."""

    root: Path
    info: StoreInfo
    snapshot: Snapshot
    units: tuple[Unit, ...]

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
    UnsupportedFormat, NotFound, BadInput, and Damaged where a manifest or the size of a file is not as recorded.
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
            f"opening {root}", f"snapshot {found.number} of another store, {found.store_id}", info.store_id, _FETCH
        )
    if expect is not None:
        _check_hash(root, found, expect)
    units = tuple(
        _unit(root, folder, reference)
        for folder, references in ((names.SEGMENTS, found.segments), (names.ADDITIONS, found.additions))
        for reference in references
    )
    contents = Contents(root, info, found, units)
    for unit in units:
        _check_files(contents, unit)
    return contents


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
        raise Damaged(f"reading {path}", f"snapshot {number!r}", "the number of a snapshot", _FETCH)
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


def _unit(root: Path, folder: str, reference: Reference) -> Unit:
    place = f"{folder}/{reference.id}"
    manifest = root / place / (names.SEGMENT if folder == names.SEGMENTS else names.ADDITION)
    unit = read_unit(root, place)
    digest = hashlib.sha256(manifest.read_bytes()).hexdigest()
    if digest != reference.sha256:
        raise Damaged(f"opening {root}", f"{manifest} has sha256 {digest[:16]}…", f"{reference.sha256[:16]}…", _FETCH)
    return unit


def _check_files(contents: Contents, unit: Unit) -> None:
    folders: set[Path] = set()
    for file in unit.files:
        path = contents.path(unit, file)
        try:
            found = os.lstat(path)
        except OSError:
            raise Damaged(
                f"opening {contents.root}", f"{path} is missing", f"a file of {file.bytes} bytes", _FETCH
            ) from None
        if not stat.S_ISREG(found.st_mode):
            # A link or a pipe would hand over bytes from outside the store.
            raise Damaged(f"opening {contents.root}", f"{path} is no regular file", "a regular file", _FETCH)
        if found.st_size != file.bytes:
            raise Damaged(
                f"opening {contents.root}", f"{path} has {found.st_size} bytes", f"{file.bytes} bytes", _FETCH
            )
        folders.add(path.parent)
    for folder in folders:
        while folder != contents.root:
            if folder.is_symlink():
                raise Damaged(f"opening {contents.root}", f"{folder} is a link", "a folder", _FETCH)
            folder = folder.parent
