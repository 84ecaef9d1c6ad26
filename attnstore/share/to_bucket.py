"""This file sends a snapshot into a bucket, where a file is there whole or not at all, and can be created if absent.

Nothing is locked. Who sends a unit first leaves its claim, `.staging-NAME` with the sha256 of the manifest: others may
send the same unit beside it, as they write the same bytes, and who has another under that name sends none of it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

from attnstore.errors import BadInput, NotFound
from attnstore.format import names
from attnstore.format.bucket import bucket, children
from attnstore.format.limits import JSON_BYTES
from attnstore.format.manifest import File, Snapshot, Unit, read_snapshot
from attnstore.format.remote import Remote, received, said
from attnstore.share.pushing import Outgoing, Pushed, Told, blocks, numbered, refuse_other, tag_text, tagged

FILES = 4
"""So many files are under way at once; of a large one so many parts."""

PARTS = 2
PART = 8 * 2**20
"""A larger file goes in parts of this size, which the server joins at the end."""

_SHA256 = "sha256"
"""What an object is said to hold, in its metadata: written by whoever sent exactly that."""


def send(out: Outgoing, address: str, told: Told) -> Pushed:
    """Send a snapshot into the folder of a bucket. Raises as `push` does."""
    address = address.rstrip("/")
    sending = _Sending(bucket(address), address, told)
    with writing(address), ThreadPoolExecutor(FILES) as pool:
        there = sending.text(names.STORE)
        if there not in (None, out.store):
            raise refuse_other(address, "store")
        manifests = [out.manifest(unit) for unit in out.contents.units]
        found = list(pool.map(lambda manifest: sending.text(manifest[0]), manifests))
        for (path, text), known in zip(manifests, found, strict=True):
            if known not in (None, text):
                raise refuse_other(address, path)
        if not create(sending.objects, names.STORE, out.store):
            raise refuse_other(address, "store")
        for unit, (path, text), known in zip(out.contents.units, manifests, found, strict=True):
            if known == text:
                sending.is_there(unit.files)
            else:
                sending.unit(out, unit, path, text, pool)
        number = publish(sending.objects, address, out.snapshot)
        other = [
            name
            for name in out.tags
            if not create(sending.objects, _tag(name), tag_text(number, out.snapshot.content_hash))
        ]
        other = [name for name in other if _names(sending.text(_tag(name))) != number]
        for name, page in out.pages.items():
            if sending.text(name) != page:
                sending.put(name, page)
    return Pushed(
        number, out.snapshot.content_hash, sending.sent, sending.sent_bytes, sending.kept, other_tags=tuple(other)
    )


class _Sending:
    """One push: what it has sent so far. Threads share it."""

    def __init__(self, objects: Any, address: str, told: Told) -> None:
        self.objects, self.address, self.told = objects, address, told
        self.sent, self.sent_bytes, self.kept = 0, 0, 0
        self._lock = Lock()

    def text(self, path: str) -> bytes | None:
        """What a small file holds; None where there is none."""
        try:
            return received(self.objects, path, JSON_BYTES, f"reading {self.address}/{path}")
        except FileNotFoundError:
            return None

    def put(self, path: str, data: bytes) -> None:
        """Write a small file, whatever is there."""
        import obstore

        obstore.put(self.objects, path, data)

    def is_there(self, files: Sequence[File]) -> None:
        """Count what need not be sent."""
        with self._lock:
            self.kept += len(files)
            self.told(sum(file.bytes for file in files))

    def unit(self, out: Outgoing, unit: Unit, manifest: str, text: bytes, pool: ThreadPoolExecutor) -> None:
        """Send what is not yet there of a unit, then its manifest. BadInput where another has this name."""
        import obstore

        top, _, name = unit.folder.rpartition("/")
        claim, reference = f"{top}/{names.STAGING}{name}", hashlib.sha256(text).hexdigest().encode()
        if not create(self.objects, claim, reference):
            there = self.text(claim)
            if there is not None and there != reference:
                found = f"another {manifest} is being sent there"
                remedy = f"If nobody is at it any more, remove {self.address}/{claim}"
                raise BadInput(f"sending to {self.address}", found, "the same, or none", remedy)
        # Whoever held the claim until now may have finished.
        if (known := self.text(manifest)) not in (None, text):
            obstore.delete(self.objects, claim)
            raise refuse_other(self.address, manifest)
        if known is None:
            sizes = {
                str(one["path"]): int(one["size"])
                for chunk in obstore.list(self.objects, f"{unit.folder}/")
                for one in chunk
            }
            list(
                pool.map(lambda file: self._file(out, unit, file, sizes.get(f"{unit.folder}/{file.path}")), unit.files)
            )
            if not create(self.objects, manifest, text):
                raise refuse_other(self.address, manifest)
            self.sent += 1
        else:
            self.is_there(unit.files)
        obstore.delete(self.objects, claim)

    def _file(self, out: Outgoing, unit: Unit, file: File, size: int | None) -> None:
        import obstore

        path = f"{unit.folder}/{file.path}"
        if size == file.bytes and self._hash_there(path) == file.sha256:
            self.is_there([file])
            return

        def counted(size: int) -> None:
            with self._lock:
                self.told(size)

        obstore.put(
            self.objects,
            path,
            blocks(out.contents.folder / path, file, counted),
            attributes={_SHA256: file.sha256},
            chunk_size=PART,
            max_concurrency=PARTS,
        )
        with self._lock:
            self.sent += 1
            self.sent_bytes += file.bytes

    def _hash_there(self, path: str) -> str | None:
        """The sha256 that the sender of an object stated; the size alone would tell nothing of Parquet."""
        import obstore

        return obstore.get(self.objects, path, options={"head": True}).attributes.get(_SHA256)


def create(objects: Any, path: str, data: bytes) -> bool:
    """Create a small file unless there is one; whether `data` is there now, from this writer or an equal one.

    A server may write the file and its answer be lost: then the next try is told that there is one. So what is there
    decides, and not what the server says.
    """
    import obstore
    from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError

    try:
        obstore.put(objects, path, data, mode="create")
        return True
    except (AlreadyExistsError, PreconditionError):
        pass
    except NotSupportedError:
        raise
    except BaseError:
        try:
            if bytes(obstore.get(objects, path).bytes()) == data:
                return True
        except (BaseError, OSError):
            pass
        raise
    try:
        return bytes(obstore.get(objects, path).bytes()) == data
    except FileNotFoundError:  # dropped in between, as claims are
        return False


def publish(objects: Any, address: str, snapshot: Snapshot) -> int:
    """Create the snapshot under its own number, or the next free one where another has that; the number it has.

    Where a snapshot of the same content is there under that number, or is the newest, that one serves.
    """
    number, parent = snapshot.number, snapshot.parent
    while True:
        path = f"{names.SNAPSHOTS}/{names.snapshot_name(number)}"
        if create(objects, path, numbered(snapshot, number, parent)):
            return number
        if _read(objects, address, number).content_hash == snapshot.content_hash:
            return number
        found = (names.snapshot_number(name) for name in children(objects, names.SNAPSHOTS))
        newest = max(one for one in found if one is not None)
        if _read(objects, address, newest).content_hash == snapshot.content_hash:
            return newest
        number, parent = newest + 1, newest


def _read(objects: Any, address: str, number: int) -> Snapshot:
    path = f"{names.SNAPSHOTS}/{names.snapshot_name(number)}"
    return read_snapshot(Remote(f"{address}/{path}", objects, path))


def _tag(name: str) -> str:
    return f"{names.TAGS}/{name}.json"


def _names(text: bytes | None) -> int | None:
    try:
        return tagged(json.loads(text or b""))
    except ValueError:
        return None


@contextmanager
def writing(address: str) -> Iterator[None]:
    """Turns what obstore raises into BadInput where the server refuses, NotFound where it does not answer."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    doing = f"sending to {address}"
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        remedy = "See whether the bucket is there, and the keys in AWS_ACCESS_KEY_ID and so on may write"
        raise BadInput(doing, f"the server refuses ({said(error)})", "a bucket that can be written", remedy) from error
    except BaseError as error:
        remedy = "Run the same command again: what is there is not sent anew"
        raise NotFound(doing, said(error), "an answer of the server", remedy) from error
