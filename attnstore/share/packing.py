"""This file packs a snapshot of a store into one uncompressed zip file, which opens in place, and unpacks it again.

Equal stores give equal bytes: names are sorted, and no time or owner is kept.
"""

import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from attnstore.errors import BadInput, Damaged, NoSpace
from attnstore.format import names
from attnstore.format.commit import sync
from attnstore.format.limits import SMALL_BYTES
from attnstore.format.manifest import File, Unit, load
from attnstore.format.packed import Package, is_package
from attnstore.format.regular import opened
from attnstore.format.remote import Place, Remote
from attnstore.share.card import card, is_made
from attnstore.share.croissant import CROISSANT, croissant_text
from attnstore.share.listed import data
from attnstore.share.whole import whole
from attnstore.store.contents import Contents, read_contents

ALIGNMENT = 64
"""The bytes of a file begin at a multiple of it, so that numbers in them can be mapped into memory."""

_TIME = (1980, 1, 1, 0, 0, 0)
_PADDING_ID, _HEADER_BYTES, _EXTRA_BYTES, _ZIP64_EXTRA_BYTES = 0xD935, 30, 4, 20
_BLOCK = 2**20
_REMEDY = "Fetch the file again, or ask those who packed it to use: attnstore pack"

Source = bytes | tuple[Unit, File]
"""What a file of a package is made from: its bytes, or a file that a manifest lists."""


def pack(contents: Contents, target: Path) -> int:
    """Write the store, at its snapshot, into a new zip file `target`; its bytes. README and croissant.json are added.

    Every file is hashed on the way. BadInput where `target` exists or cannot be written, Damaged for a file of the
    store that is not as its manifest says, NoSpace for a full disk; then there is no `target`.
    """
    files = dict(sorted(_files(contents)))
    with (
        whole(target, f"packing {contents.root}") as staging,
        staging.open("xb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as package,
    ):
        for name, source in files.items():
            size = len(source) if isinstance(source, bytes) else source[1].bytes
            # The long form whatever the size, so that the length of the header is known.
            with package.open(_entry(name, size, file.tell()), "w", force_zip64=True) as entry:
                _write(contents, source, entry.write)
    return target.stat().st_size


def unpack(package: Path, target: Path, *, expect: str | None = None) -> Contents:
    """Write the store in a zip file into the new folder `target`, whole or not at all; what it holds.

    The file need not come from a friend: names that lead out of the folder, links, compressed or encrypted files, files
    that overlap, come twice or are listed nowhere are refused before anything is written, and each file that is written
    has the size and sha256 that its manifest states. Raises NotAStore, BadInput, Damaged or NoSpace.
    """
    doing = f"unpacking {package}"
    if not is_package(package):
        raise BadInput(doing, "no zip file there", "a file that attnstore pack made")
    contents = read_contents(package, expect=expect)
    root = contents.root
    assert isinstance(root, Remote)
    assert isinstance(root.objects, Package)
    found, files = root.objects.files, dict(sorted(_listed(contents)))
    files |= {name: data(root / name, SMALL_BYTES) for name in _tags(contents)}
    files |= {name: data(root / name) for name in (names.README, CROISSANT) if name in found}
    if left := sorted(found.keys() - files.keys()):
        raise Damaged(doing, f"{left[0]!r}, which nothing lists", "the files of one snapshot", _REMEDY)
    for name, source in files.items():
        size = found[name].file_size if name in found else 0
        if not isinstance(source, bytes) and (name not in found or size != source[1].bytes):
            raise Damaged(doing, f"{size} bytes of {name}", f"{source[1].bytes} bytes", _REMEDY)
    total = sum(entry.file_size for entry in found.values())
    if target.parent.is_dir() and (free := shutil.disk_usage(target.parent).free) < total:
        raise NoSpace(doing, f"{free} bytes free", f"{total} bytes", "Free some, or open the zip file as it is")
    with whole(target, doing) as staging:
        for name, source in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                _write(contents, source, file.write)
        read_contents(staging, expect=contents.snapshot.content_hash).units  # noqa: B018 - it looks at every file
        for folder in staging.rglob("*"):
            if folder.is_dir():
                sync(folder)
    return read_contents(target)


def _files(contents: Contents) -> Iterator[tuple[str, Source]]:
    """Everything that a package holds, by name."""
    yield from _listed(contents)
    for name in _tags(contents):
        yield name, data(contents.root / name, SMALL_BYTES)
    yield names.README, _readme(contents)
    yield CROISSANT, croissant_text(contents).encode()


def _listed(contents: Contents) -> Iterator[tuple[str, Source]]:
    """What the snapshot lists, the manifests that list it, and what is read first. Damaged where one has changed."""
    root, snapshot = contents.root, contents.snapshot
    yield names.STORE, data(root / names.STORE)
    number = names.snapshot_name(snapshot.number)
    yield f"{names.SNAPSHOTS}/{number}", data(root / names.SNAPSHOTS / number)
    pinned = {one.id: one.sha256 for one in (*snapshot.segments, *snapshot.additions)}
    for unit in contents.units:
        place = f"{unit.folder}/{names.SEGMENT if unit.is_segment else names.ADDITION}"
        text = data(root / place)
        if sha256(text).hexdigest() != pinned[unit.id]:
            raise Damaged(f"reading {root / place}", "it changed meanwhile", remedy="Run the same command again")
        yield place, text
        for file in unit.files:
            yield f"{unit.folder}/{file.path}", (unit, file)


def _tags(contents: Contents) -> list[str]:
    """The tags that name the snapshot, as paths."""
    folder = contents.root / names.TAGS
    if isinstance(folder, Remote):
        there = sorted(folder.names())
    else:
        there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    tags = [name for name in there if name.endswith(".json") and names.is_identifier(name.removesuffix(".json"))]
    values = {name: load(folder / name, most=SMALL_BYTES) for name in tags}
    named = (name for name, value in values.items() if isinstance(value, Mapping))
    return [f"{names.TAGS}/{name}" for name in named if values[name].get("snapshot") == contents.snapshot.number]


def _readme(contents: Contents) -> bytes:
    """What somebody wrote, or a card that fits the snapshot."""
    path = contents.root / names.README
    if isinstance(path, Path) and path.is_file():
        text = data(path, SMALL_BYTES)
        if not is_made(text.decode(errors="replace")):
            return text
    return card(contents).encode()


def _write(contents: Contents, source: Source, write: Callable[[bytes | memoryview], object]) -> None:
    """Write a file of a package; Damaged where it has not the size and sha256 that its manifest states."""
    if isinstance(source, bytes):
        write(source)
        return
    unit, file = source
    place = contents.root / unit.folder / file.path
    digest, size = sha256(), 0
    for block in _blocks(place):
        digest.update(block)
        write(block)
        size += len(block)
        if size > file.bytes:
            break  # it may never end
    if size != file.bytes or digest.hexdigest() != file.sha256:
        found = f"{size} bytes, sha256 {digest.hexdigest()[:16]}…"
        raise Damaged(f"reading {place}", found, f"{file.bytes} bytes, sha256 {file.sha256[:16]}…", _REMEDY)


def _blocks(place: Place) -> Iterator[bytes | memoryview]:
    if isinstance(place, Remote):
        yield from place.blocks()
        return
    with open(opened(place), "rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _entry(name: str, size: int, at: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.create_system, entry.external_attr, entry.file_size = 3, 0o100644 << 16, size
    before = at + _HEADER_BYTES + len(name.encode()) + _ZIP64_EXTRA_BYTES + _EXTRA_BYTES
    padding = -before % ALIGNMENT
    entry.extra = _PADDING_ID.to_bytes(2, "little") + padding.to_bytes(2, "little") + bytes(padding)
    return entry
