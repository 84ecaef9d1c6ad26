"""This file checks what pins a store: that store.json, every snapshot and every tag fit one another."""

from pathlib import Path

from attnstore.errors import AttnStoreError
from attnstore.format import names
from attnstore.format.chosen import read_tag
from attnstore.format.commit import latest
from attnstore.format.manifest import Snapshot, StoreInfo

Broken = tuple[str, str, str]
"""Rule, file, what was found."""


def sound_snapshots(root: Path, info: StoreInfo, broken: list[Broken]) -> dict[int, Snapshot]:
    """The snapshots that can be read, by number; `broken` gets the rules F2, F13 and F14 that the others break."""
    sound: dict[int, Snapshot] = {}
    for path in _listed(root / names.SNAPSHOTS):
        where, number = f"{names.SNAPSHOTS}/{path.name}", names.snapshot_number(path.name)
        if number is None:
            broken.append(("F14", where, "no snapshot has such a name"))
            continue
        try:
            found = latest(root, number)
        except AttnStoreError as error:
            broken.append(("F2", where, str(error.found)))
            continue
        if found.store_id != info.store_id:
            broken.append(("F2", where, f"snapshot of store {found.store_id}, not {info.store_id}"))
        elif found.store_sha256 not in (None, info.sha256):
            told = f"sha256 {info.sha256[:12]}…, {str(found.store_sha256)[:12]}… in {where}"
            broken.append(("F13", names.STORE, told))
        sound[number] = found
    return sound


def broken_tags(root: Path, sound: dict[int, Snapshot], broken: list[Broken]) -> None:
    """Fills `broken` with the tags that name no snapshot, or one of other content."""
    for path in _listed(root / names.TAGS):
        where = f"{names.TAGS}/{path.name}"
        if path.suffix != ".json" or not names.is_identifier(path.stem):
            broken.append(("F14", where, "no tag has such a name"))
            continue
        try:
            number, pinned = read_tag(path)
        except AttnStoreError as error:
            broken.append(("F14", where, str(error.found)))
            continue
        if number not in sound:
            broken.append(("F14", where, f"it names snapshot {number}, which cannot be read"))
        elif pinned not in (None, sound[number].content_hash):
            told = f"content {pinned[:12]}…, {sound[number].content_hash[:12]}… in snapshot {number}"
            broken.append(("F14", where, told))


def _listed(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith(names.STAGING))
