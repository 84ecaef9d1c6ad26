"""This file names snapshots: a tag is what a paper cites, and what it names is never collected."""

import secrets
from dataclasses import dataclass
from pathlib import Path

from attnstore.errors import BadInput, Damaged, NotFound
from attnstore.format import names
from attnstore.format.commit import latest, snapshots, sync, write, write_once
from attnstore.format.manifest import dumps, load, read_store


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a snapshot: its number, the content hash that pins it, and when it was made.

    Hash and time are None where the snapshot is no longer there.
    """

    name: str
    snapshot: int
    content_hash: str | None
    time: str | None


def tag(store: str | Path, name: str, snapshot: int | None = None, *, move: bool = False) -> Tag:
    """Give snapshot `snapshot`, or the newest one, a name. The same again changes nothing; `move` moves a tag.

    BadInput where the tag names another snapshot and is not to be moved, NotFound where there is no such snapshot.
    """
    root, doing = Path(store), f"tagging {store}"
    read_store(root)
    names.checked_identifier(doing, name)
    found = latest(root, snapshot)
    number = found.number
    path, text = _path(root, name), dumps({"snapshot": number, "content_hash": found.content_hash})
    is_new = write_once(path, text)
    if not is_new and (before := tagged(path)) != number:
        if not move:
            remedy = "Choose another name, or move it: --move"
            raise BadInput(doing, f"the tag {name!r} names snapshot {before}", "a new name", remedy)
        staging = path.with_name(f"{names.STAGING}{path.name}-{secrets.token_hex(4)}")
        write(staging, text)
        staging.replace(path)
        sync(path.parent)
    if number not in snapshots(root):
        # Whoever collects looks for tags after taking a snapshot away: one of the two sees the other.
        if is_new:
            path.unlink()
        raise NotFound(doing, f"snapshot {number} was collected meanwhile", "one that is there", "Tag another")
    return _described(root, name, number)


def untag(store: str | Path, name: str) -> Tag:
    """Delete a tag; what it named may then be collected. NotFound where there is none of that name."""
    root, doing = Path(store), f"deleting a tag of {store}"
    path = _path(root, names.checked_identifier(doing, name))
    if not path.is_file():
        known = [tag.name for tag in tags(root)]
        raise NotFound(doing, f"no tag {name!r}", f"one of {', '.join(known)}" if known else "a tag; it has none")
    found = _described(root, name, tagged(path))
    path.unlink()
    sync(path.parent)
    return found


def tags(store: str | Path) -> list[Tag]:
    """The tags of a store by name. Damaged where one of them does not say which snapshot it names."""
    root = Path(store)
    read_store(root)
    folder = root / names.TAGS
    paths = sorted(folder.glob("[!.]*.json")) if folder.is_dir() else []
    return [_described(root, path.stem, tagged(path)) for path in paths]


def tagged(path: Path) -> int:
    """The number of the snapshot that the tag in a file names; Damaged where it names none."""
    value = load(path)
    number = value.get("snapshot") if isinstance(value, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        raise Damaged(f"reading {path}", f"snapshot {number!r}", "the number of a snapshot", "Delete or move the tag")
    return number


def _path(root: Path, name: str) -> Path:
    return root / names.TAGS / f"{name}.json"


def _described(root: Path, name: str, number: int) -> Tag:
    if number not in snapshots(root):
        return Tag(name, number, None, None)
    found = latest(root, number)
    return Tag(name, number, found.content_hash, found.time)
