"""This file finds the snapshot that a tag names, and compares it with the content hash that somebody expects."""

from attnstore.errors import BadInput, Damaged, NotFound
from attnstore.format import names
from attnstore.format.commit import latest
from attnstore.format.manifest import FETCH, Snapshot, load
from attnstore.format.remote import Place, Remote

HASH_DIGITS = 8
"""The shortest prefix of a content hash that `expect` takes."""


def chosen(root: Place, snapshot: int | None, tag: str | None, expect: str | None) -> Snapshot:
    """Snapshot `snapshot`, or the one that `tag` names, or the newest; Damaged where `expect` is another's hash.

    NotAStore where there is no snapshot, NotFound where there is not this one, BadInput for both a number and a tag.
    """
    pinned = None
    if tag is not None:
        if snapshot is not None:
            raise BadInput(f"opening {root}", f"both snapshot={snapshot} and tag={tag!r}", "one of them")
        snapshot, pinned = tagged(root, tag)
    found = latest(root, snapshot)
    if pinned not in (None, found.content_hash):
        there = f"the tag {tag!r} of snapshot {found.number}, for content {pinned[:16]}…"
        raise Damaged(f"opening {root}", there, f"{found.content_hash[:16]}…, which that snapshot has", FETCH)
    if expect is not None:
        _check_expected(root, found, expect)
    return found


def tagged(root: Place, tag: str) -> tuple[int, str | None]:
    """The number of the snapshot that a tag names, and its content hash where the tag tells it."""
    folder, name = root / names.TAGS, names.checked_identifier(f"opening {root} at a tag", tag)
    if isinstance(folder, Remote):
        known = sorted(file.removesuffix(".json") for file in folder.names() if file.endswith(".json"))
    else:
        known = sorted(place.stem for place in folder.glob("*.json")) if folder.is_dir() else []
    if name not in known:
        raise NotFound(
            f"opening {root}",
            f"no tag {tag!r}",
            f"one of {', '.join(known)}" if known else "snapshot= or expect=; it tells no tags",
        )
    return read_tag(folder / f"{name}.json")


def read_tag(path: Place) -> tuple[int, str | None]:
    """What the file of a tag says: the number of a snapshot and, where it tells it, its content hash."""
    value = load(path)
    number, pinned = (value.get("snapshot"), value.get("content_hash")) if isinstance(value, dict) else (None, None)
    if not isinstance(number, int) or isinstance(number, bool):
        raise Damaged(f"reading {path}", f"snapshot {number!r}", "the number of a snapshot", FETCH)
    return number, None if pinned is None else str(pinned)


def _check_expected(root: Place, snapshot: Snapshot, expect: str) -> None:
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
