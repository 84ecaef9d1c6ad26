"""This file sends a snapshot of a store to where others can open it: into a bucket, or to the Hub.

Units go first and whole, each with its manifest last; then the snapshot, created only if its number is free; then tags
and pages for people. So a reader sees the snapshot once all of it is there, and a push that was interrupted goes on.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from attnstore.errors import BadInput, Damaged
from attnstore.format import names
from attnstore.format.manifest import File, Snapshot, Unit, dumps, snapshot_to_json
from attnstore.share.tags import tags
from attnstore.store.contents import Contents, read_contents

Told = Callable[[int], object]
"""Is told how many more bytes are there, sent now or earlier."""

PAGES = (names.README, "croissant.json")
"""What goes along for people and catalogues; the newest replaces what is there."""

BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What goes: a store in a folder at one snapshot, the text of store.json, tags that name the snapshot, pages."""

    contents: Contents
    store: bytes
    tags: tuple[str, ...]
    pages: Mapping[str, bytes]

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that goes."""
        return self.contents.snapshot

    def manifest(self, unit: Unit) -> tuple[str, bytes]:
        """Path and text of the manifest of a unit; Damaged where it is no longer what the snapshot lists."""
        path = f"{unit.folder}/{names.SEGMENT if unit.is_segment else names.ADDITION}"
        text = (self.contents.folder / path).read_bytes()
        references = self.snapshot.segments if unit.is_segment else self.snapshot.additions
        if hashlib.sha256(text).hexdigest() not in {one.sha256 for one in references if one.id == unit.id}:
            raise Damaged(f"sending {path}", "not the manifest that the snapshot lists", remedy="Run: attnstore verify")
        return path, text


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push came to: the number of the snapshot there, what was sent and what was there already.

    `revision` is the Hub's commit, `other_tags` are those that name another snapshot there and were left as they are.
    """

    snapshot: int
    content_hash: str
    sent: int
    sent_bytes: int
    kept: int
    revision: str | None = None
    other_tags: tuple[str, ...] = ()


def push(store: Path, address: str, *, told: Told = lambda size: None, **which: object) -> Pushed:
    """Send a store at its newest snapshot, or at `snapshot=` or `tag=`, to s3://BUCKET/FOLDER or hf://datasets/….

    What is there already is not sent again. The snapshot keeps its number; where another snapshot has that, it gets the
    next free one. BadInput, before anything is sent, where another store lies there, or other files under the same id;
    Damaged where a file here is not what its manifest says; NotFound where the server does not answer.
    """
    kind = address.partition("://")[0].lower()
    if kind == "s3":
        from attnstore.share.to_bucket import send
    elif kind == "hf":
        from attnstore.share.to_hub import send
    else:
        raise BadInput(
            f"sending to {address}", "an address of neither", "s3://BUCKET/FOLDER or hf://datasets/OWNER/NAME"
        )
    return send(outgoing(read_contents(Path(store), **which)), address, told)  # type: ignore[arg-type]


def outgoing(contents: Contents) -> Outgoing:
    """What of a store in a folder goes along with the snapshot at which it was opened."""
    root = contents.folder
    named = (tag.name for tag in tags(root) if tag.snapshot == contents.snapshot.number)
    pages = {name: (root / name).read_bytes() for name in PAGES if (root / name).is_file()}
    return Outgoing(contents, (root / names.STORE).read_bytes(), tuple(named), pages)


def blocks(path: Path, file: File, told: Told = lambda size: None) -> Iterator[bytes]:
    """A file a block after the other. Damaged, before the last, where it is not what its manifest says.

    So what is sent from here ends before it is whole, and nothing is there under its name.
    """
    digest, size, waiting = hashlib.sha256(), 0, b""
    with path.open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
            size += len(block)
            if waiting:
                told(len(waiting))
                yield waiting
            waiting = block
    if size != file.bytes or digest.hexdigest() != file.sha256:
        found = f"{size} bytes with sha256 {digest.hexdigest()[:16]}…"
        raise Damaged(f"sending {path}", found, f"{file.bytes} and {file.sha256[:16]}…", "Run: attnstore verify")
    told(len(waiting))
    yield waiting


def numbered(snapshot: Snapshot, number: int, parent: int | None) -> bytes:
    """The text of a snapshot of the same lists under this number."""
    return snapshot_to_json(replace(snapshot, number=number, parent=parent))


def tag_text(number: int, content_hash: str) -> bytes:
    """The text of a tag that names a snapshot."""
    return dumps({"snapshot": number, "content_hash": content_hash})


def tagged(tag: object) -> int | None:
    """The snapshot that the value of a tag names; None for a value that is no tag."""
    number = tag.get("snapshot") if isinstance(tag, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def refuse_other(address: str, what: str) -> BadInput:
    """The error for a place where something else lies."""
    remedy = "Send it to another folder; one of another store is never changed"
    return BadInput(f"sending to {address}", f"another {what} there", "no store, or the same", remedy)
