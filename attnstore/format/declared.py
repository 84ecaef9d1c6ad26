"""This file opens an array of maps once its metadata names only what the format allows, and reads it with care.

zarr's pipelines decode whatever a chunk holds. `Guarded` looks at the chunks that a read touches before they do.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarr.storage
from numpy.typing import NDArray
from zarr.core.buffer import default_buffer_prototype

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.arrays import read_cells
from attnstore.format.declared_codecs import Layout, layout
from attnstore.format.limits import SHARD_BYTES, SMALL_BYTES
from attnstore.format.manifest import FETCH, load
from attnstore.format.remote import Place, Remote
from attnstore.format.shard_source import Folder, Shard, Source
from attnstore.format.unpacked import check_encoded, slack

_ABSENT = 2**64 - 1


def open_array(folder: Place, name: str, sha256: str | None = None) -> "zarr.Array[Any]":
    """The array `name` of a segment's maps, once its metadata names only what this format allows.

    Damaged otherwise, or where the metadata has not this `sha256`, before a byte of data is read.
    """
    place = folder / names.MAPS / name
    metadata = load(place / "zarr.json", sha256, SMALL_BYTES)
    doing = f"opening {place / 'zarr.json'}"
    try:
        layout(metadata)
    except KeyError as error:
        raise Damaged(doing, f"no {error} in it", "the metadata of an array", FETCH) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged(doing, str(error)[:400], "what docs/format.md allows", FETCH) from error
    try:
        # From the metadata that was checked: opening by the path would read them once more, or other ones.
        store = (
            place.reading.for_zarr() if isinstance(place, Remote) else zarr.storage.LocalStore(place, read_only=True)
        )
        path = place.path if isinstance(place, Remote) else ""
        return zarr.Array.from_dict(zarr.storage.StorePath(store, path), metadata)
    except Exception as error:  # zarr raises errors of many types on metadata that it cannot use
        raise Damaged(doing, f"no readable array ({error})", "", FETCH) from error


class Guarded:
    """The cells of an array that `open_array` gave, read by zarr once each chunk was seen to unpack to its size."""

    def __init__(self, array: "zarr.Array[Any]", source: Path | Source) -> None:
        self.array = array
        self.layout: Layout = layout(_described(array))
        self._source: Source = Folder(source) if isinstance(source, Path) else source

    def keys(self, layer: slice, head: slice, cell: slice) -> Iterator[str]:
        """The names of the files that hold these cells, such as c/0/0/0."""
        for numbers in itertools.product(*map(_touched, (layer, head, cell), self.layout.outer)):
            yield "c/" + "/".join(map(str, numbers))

    def read(self, layer: slice, head: slice, cell: slice) -> NDArray[Any]:
        """Codes [layer, head, cell]. Damaged for a chunk that would unpack to more than it should; else as zarr does.

        A file that is not there is left to zarr, which takes its cells for the fill value.
        """
        for numbers in itertools.product(*map(_touched, (layer, head, cell), self.layout.outer)):
            key = "c/" + "/".join(map(str, numbers))
            try:
                file = self._source.open(key)
            except Damaged as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue
                raise
            try:
                self._check(file, numbers, (layer, head, cell))
            except ValueError as error:
                if isinstance(error, Damaged):
                    raise
                raise Damaged(f"reading {file.path}", f"a chunk that cannot be decoded ({error})", "", FETCH) from error
            finally:
                file.close()
        return read_cells(self.array, layer, head, cell)

    def _check(self, file: Shard, numbers: tuple[int, ...], wanted: tuple[slice, ...]) -> None:
        it, length = self.layout, file.size()
        if length > slack(SHARD_BYTES):
            raise ValueError(f"a file of {length} bytes")
        if not it.index:
            if length > slack(it.chunk_bytes):
                raise ValueError(f"{length} bytes for a chunk of {it.chunk_bytes}")
            check_encoded(file.read(length, 0), it.codecs, it.chunk_bytes)
            return
        if length < it.index:
            raise ValueError("no index at its end")
        shape = tuple(whole // part for whole, part in zip(it.outer, it.inner, strict=True))
        data = file.read(it.index, 0 if it.is_index_first else length - it.index)
        index = np.frombuffer(data, "<u8", count=2 * int(np.prod(shape))).reshape(*shape, 2)
        within = (
            _touched(slice(max(part.start - number * size, 0), min(part.stop - number * size, size)), chunk)
            for part, number, size, chunk in zip(wanted, numbers, it.outer, it.inner, strict=True)
        )
        for at in itertools.product(*within):
            offset, size = index[at].tolist()
            if offset == size == _ABSENT:
                continue
            if offset + size > length or size > slack(it.chunk_bytes):
                raise ValueError(f"a chunk of {size} bytes at {offset}, in a file of {length}")
            check_encoded(file.read(size, offset), it.codecs, it.chunk_bytes)


def _described(array: "zarr.Array[Any]") -> Any:
    """The metadata as JSON writes them; in memory zarr has objects of its own."""
    return json.loads(array.metadata.to_buffer_dict(default_buffer_prototype())["zarr.json"].to_bytes())


def _touched(part: slice, size: int) -> range:
    """The numbers of the chunks of this size that a part of an axis touches."""
    return range(part.start // size, -(-part.stop // size))
