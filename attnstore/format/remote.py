"""This file reads files that lie in no folder, whole or by ranges; joined with `/`, as paths are.

They lie behind an address, read through obstore, or in a package (`packed.py`). `address.py` and `packed.py` make the
place of a store from what a user wrote. Nothing else knows what kind of place it was.
"""

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

from attnstore.errors import AttnStoreError, Damaged, NotFound

FETCH = "Fetch the store again, or ask those who publish it to run: attnstore verify"
REQUESTS = 8
"""So many are under way at once."""

_SAID = 400

Folder = Callable[[str], Sequence[str]]
"""The names in a folder of a store, by its path below the store; as far as the address tells them."""


@runtime_checkable
class Reading(Protocol):
    """What reading files needs, wherever they lie; FileNotFoundError or a typed error where one cannot be read."""

    def whole(self, path: str, most: int, doing: str) -> bytes:
        """All of a file; Damaged, before more than its head is read, where it has more than `most` bytes."""
        ...

    def span(self, path: str, start: int, stop: int) -> memoryview:
        """Bytes `start` to `stop` (exclusive), or fewer where the file ends."""
        ...

    def blocks(self, path: str) -> Iterator[memoryview]:
        """All of a file, a part after the other."""
        ...

    def for_zarr(self) -> Any:
        """The same files as a store of zarr-python, read-only."""
        ...


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder of a store behind an address or in a package, `path` within `objects`.

    `objects` is an obstore store, or whatever has the methods of `Reading`.
    """

    address: str
    objects: Any = field(repr=False)
    path: str = ""
    listing: Folder = field(default=lambda folder: (), repr=False)
    below: str = ""

    def __truediv__(self, name: str) -> "Remote":
        return Remote(
            f"{self.address.rstrip('/')}/{name}",
            self.objects,
            f"{self.path}/{name}".strip("/"),
            self.listing,
            f"{self.below}/{name}".strip("/"),
        )

    def __str__(self) -> str:
        return self.address

    @property
    def reading(self) -> Reading:
        """How its files are read."""
        return self.objects if isinstance(self.objects, Reading) else Objects(self.objects)

    def names(self) -> Sequence[str]:
        """The names in this folder, as far as the address tells them."""
        return self.listing(self.below)

    def read_bytes(self, most: int) -> bytes:
        """The whole file; Damaged where there is none or it has more than `most` bytes."""
        with typed(self):
            return self.reading.whole(self.path, most, f"reading {self}")

    def read_range(self, start: int, stop: int) -> memoryview:
        """Bytes `start` to `stop` (exclusive); Damaged where the file has not that many."""
        with typed(self):
            data = self.reading.span(self.path, start, stop)
        if len(data) != stop - start:
            raise Damaged(f"reading {self}", f"{len(data)} bytes of {start} to {stop}", "all of them", FETCH)
        return data

    def copy_to(self, file: BinaryIO, size: int, sha256: str) -> None:
        """Write the whole file to `file`; Damaged where its size or hash is another."""
        digest, found = hashlib.sha256(), 0
        for block in self.blocks():
            digest.update(block)
            file.write(block)
            found += len(block)
            if found > size:
                break  # it may never end
        if found != size:
            raise Damaged(
                f"reading {self}", f"{'more than ' * (found > size)}{min(found, size)} bytes", f"{size}", FETCH
            )
        if digest.hexdigest() != sha256:
            raise Damaged(f"reading {self}", f"sha256 {digest.hexdigest()[:16]}…", f"{sha256[:16]}…", FETCH)

    def blocks(self) -> Iterator[memoryview]:
        """The whole file, a part after the other; whether it is the right one is the caller's affair."""
        with typed(self):
            yield from self.reading.blocks(self.path)


@dataclass(frozen=True, slots=True)
class Objects:
    """Files that obstore reads: behind http, in a bucket."""

    store: Any

    def whole(self, path: str, most: int, doing: str) -> bytes:
        """See `Reading`."""
        return received(self.store, path, most, doing)

    def span(self, path: str, start: int, stop: int) -> memoryview:
        """See `Reading`."""
        return memoryview(_obstore().get_range(self.store, path, start=start, end=stop))

    def blocks(self, path: str) -> Iterator[memoryview]:
        """See `Reading`."""
        for block in _obstore().get(self.store, path).stream(min_chunk_size=2**20):
            yield memoryview(block)

    def for_zarr(self) -> Any:
        """See `Reading`."""
        from zarr.storage import ObjectStore

        return ObjectStore(self.store, read_only=True)


def received(objects: Any, path: str, most: int, doing: str) -> bytes:
    """A whole answer; Damaged, before more than its head is read, where it has more than `most` bytes."""
    answer = _obstore().get(objects, path)
    # An answer that does not state its size is refused by obstore, and what goes beyond it is not read.
    if (size := answer.meta["size"]) > most:
        raise Damaged(doing, f"{size} bytes", f"{most} at most")
    return bytes(answer.bytes())


Place = Path | Remote
"""A file or folder on this machine, or behind an address or in a package."""


@contextmanager
def typed(place: Remote) -> Iterator[None]:
    """Turns what obstore raises into Damaged for a file that is not there, NotFound for a server that does not answer.

    How often a request is tried again, and how long, is obstore's affair.
    """
    doing = f"reading {place}"
    try:
        yield
    except AttnStoreError:
        raise
    except FileNotFoundError as error:
        raise Damaged(doing, "it is missing", "a file of the store", FETCH) from error
    except Exception as error:
        if not isinstance(error, (OSError, *_errors_of_obstore())):
            raise
        raise NotFound(doing, said(error), "an answer of the server", "Try again, or open the store anew") from error


def said(error: BaseException) -> str:
    """What obstore says of a failed request, without the dump of its parts that follows."""
    first = str(error).partition("\n")[0]
    where = first.find("Error performing ")
    # It quotes what the server sent with the failure, which may be long.
    return (first[max(where, 0) :] or type(error).__name__)[:_SAID]


def _errors_of_obstore() -> tuple[type[Exception], ...]:
    # A package is read without it: what was never loaded has raised nothing.
    if "obstore" not in sys.modules:
        return ()
    from obstore.exceptions import BaseError

    return (BaseError,)


def _obstore() -> Any:
    import obstore  # which opening a folder does not wait for

    return obstore
