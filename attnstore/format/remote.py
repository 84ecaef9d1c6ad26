"""This file reads files behind an address, whole or by ranges, through obstore; joined with `/`, as paths are.

`address.py` makes the place of a store from what a user wrote. Nothing else here knows what kind of address it was.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from attnstore.errors import Damaged, MissingExtra, NotFound

FETCH = "Fetch the store again, or ask those who publish it to run: attnstore verify"
REQUESTS = 8
"""So many are under way at once."""

_SAID = 400

Folder = Callable[[str], Sequence[str]]
"""The names in a folder of a store, by its path below the store; as far as the address tells them."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder of a store behind an address. `objects` is an obstore store, `path` the place in it."""

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

    def names(self) -> Sequence[str]:
        """The names in this folder, as far as the address tells them."""
        return self.listing(self.below)

    def read_bytes(self, most: int) -> bytes:
        """The whole file; Damaged where there is none or it has more than `most` bytes."""
        with typed(self):
            return received(self.objects, self.path, most, f"reading {self}")

    def read_range(self, start: int, stop: int) -> memoryview:
        """Bytes `start` to `stop` (exclusive); Damaged where the file has not that many."""
        with typed(self):
            data = memoryview(_obstore().get_range(self.objects, self.path, start=start, end=stop))
        if len(data) != stop - start:
            raise Damaged(f"reading {self}", f"{len(data)} bytes of {start} to {stop}", "all of them", FETCH)
        return data

    def copy_to(self, file: BinaryIO, size: int, sha256: str) -> None:
        """Write the whole file to `file`; Damaged where its size or hash is another."""
        digest, found = hashlib.sha256(), 0
        for block in self._blocks():
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

    def _blocks(self) -> Iterator[memoryview]:
        with typed(self):
            for block in _obstore().get(self.objects, self.path).stream(min_chunk_size=2**20):
                yield memoryview(block)


def received(objects: Any, path: str, most: int, doing: str) -> bytes:
    """A whole answer; Damaged, before more than its head is read, where it has more than `most` bytes."""
    answer = _obstore().get(objects, path)
    # An answer that does not state its size is refused by obstore, and what goes beyond it is not read.
    if (size := answer.meta["size"]) > most:
        raise Damaged(doing, f"{size} bytes", f"{most} at most")
    return bytes(answer.bytes())


Place = Path | Remote
"""A file or folder on this machine, or behind an address."""


@contextmanager
def typed(place: Remote) -> Iterator[None]:
    """Turns what obstore raises into Damaged for a file that is not there, NotFound for a server that does not answer.

    How often a request is tried again, and how long, is obstore's affair.
    """
    from obstore.exceptions import BaseError

    doing = f"reading {place}"
    try:
        yield
    except Damaged:
        raise
    except FileNotFoundError as error:
        raise Damaged(doing, "it is missing", "a file of the store", FETCH) from error
    except (BaseError, OSError) as error:
        raise NotFound(doing, said(error), "an answer of the server", "Try again, or open the store anew") from error


def said(error: BaseException) -> str:
    """What obstore says of a failed request, without the dump of its parts that follows."""
    first = str(error).partition("\n")[0]
    where = first.find("Error performing ")
    # It quotes what the server sent with the failure, which may be long.
    return (first[max(where, 0) :] or type(error).__name__)[:_SAID]


def _obstore() -> Any:
    try:
        import obstore
    except ImportError:
        raise MissingExtra("reading a store behind an address", "obstore", "remote") from None
    return obstore
