"""This file reads cells of the sharded arrays that `arrays.py` writes: chunk by chunk, on all cores, to where they go.

A general reader returns a whole array of codes, which then has to be converted: that is memory written and read twice,
and about a millisecond of bookkeeping a call. Here a chunk is converted while it is in the cache.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import google_crc32c
import numpy as np
from numcodecs import blosc, zstd  # pyright: ignore[reportAttributeAccessIssue]  # compiled, without stubs
from numpy.typing import NDArray

from attnstore.errors import Damaged

if TYPE_CHECKING:
    import zarr

Put = Callable[[NDArray[Any], NDArray[Any]], None]
"""Writes codes [cell] to their place in the result [cell]."""

_ABSENT = np.iinfo(np.uint64).max
_HELD_INDEXES = 512  # a shard of 256 MiB has 32 KiB of index
_MOST_THREADS = 8
_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_REMEDY = "Fetch the store again, or run: attnstore verify"


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Where an encoded chunk lies, the cells of it that are wanted, and where they go."""

    path: str
    file: int
    offset: int
    size: int
    part: slice
    out: NDArray[Any]


class Shards:
    """The cells of one array [layer, head, cell], each shard one layer's. Threads may share it."""

    def __init__(self, folder: Path, heads: int, dtype: str, chunk: int, shard: int, codecs: Sequence[str]) -> None:
        self._folder, self._heads, self._dtype = folder, heads, np.dtype(dtype).newbyteorder("<")
        self._chunk, self._shard, self._codecs = chunk, shard, tuple(codecs)
        self._indexes: OrderedDict[str, NDArray[np.uint64]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, array: "zarr.Array[Any]", folder: Path) -> "Shards | None":
        """The array in this folder; None unless it is laid out as this format's own writer does."""
        metadata: Any = array.metadata.to_dict()
        (outer, *others), shape = metadata["codecs"], array.shape
        if others or outer["name"] != "sharding_indexed" or len(shape) != 3:
            return None
        given = outer["configuration"]
        first, *inner = (_plain(codec) for codec in given["codecs"])
        index = [_plain(codec) for codec in given["index_codecs"]]
        _, heads, shard = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        names = [codec["name"] for codec in inner]
        keys = _plain(metadata["chunk_key_encoding"])
        is_ours = (
            [*given["chunk_shape"]][:2] == [1, 1]
            and array.chunks[:2] == (1, 1)
            and (array.shards or ())[:1] == (1,)
            and heads == shape[1]
            and given.get("index_location", "end") == "end"
            and (first == _BYTES or (first["name"] == "bytes" and array.dtype.itemsize == 1))
            and index == [_BYTES, {"name": "crc32c"}]
            and names in (["blosc", "zstd"], ["blosc"], ["zstd"])
            and keys == {"name": "default", "configuration": {"separator": "/"}}
        )
        return cls(folder, heads, str(array.dtype), given["chunk_shape"][2], shard, names) if is_ours else None

    def read(self, layer: slice, head: slice, cell: slice, out: NDArray[Any], put: Put) -> None:
        """Put the codes of these cells to `out` [layer, head, cell]; Damaged for a chunk that is not there or sound."""
        files: list[int] = []
        try:
            chunks = list(self._chunks(layer, head, cell, out, files))
            todo = iter(chunks)  # threads may take from the iterator of a list at once
            _cores.run(lambda: self._work(todo, put), len(chunks))
        finally:
            for file in files:
                os.close(file)

    def _chunks(self, layer: slice, head: slice, cell: slice, out: NDArray[Any], files: list[int]) -> Iterator[_Chunk]:
        for number in range(layer.start, layer.stop):
            for shard in range(cell.start // self._shard, -(-cell.stop // self._shard)):
                path = f"{self._folder}/c/{number}/0/{shard}"
                try:
                    file = os.open(path, os.O_RDONLY)
                except FileNotFoundError as error:
                    raise Damaged(f"reading {path}", "it is missing", "a shard of the maps", _REMEDY) from error
                files.append(file)
                index, base = self._index(path, file), shard * self._shard
                length = os.fstat(file).st_size
                start, stop = max(cell.start - base, 0), min(cell.stop - base, self._shard)
                for chunk in range(start // self._chunk, -(-stop // self._chunk)):
                    begin = chunk * self._chunk
                    part = slice(max(start - begin, 0), min(stop - begin, self._chunk))
                    at = base + begin - cell.start
                    for row in range(head.start, head.stop):
                        offset, size = index[row, chunk].tolist()
                        if offset == _ABSENT:
                            raise Damaged(
                                f"reading {path}", "cells that no chunk holds", "a weight in every cell", _REMEDY
                            )
                        if offset + size > length:
                            raise Damaged(f"reading {path}", "a chunk beyond its end", f"{length} bytes", _REMEDY)
                        own = out[number - layer.start, row - head.start, at + part.start : at + part.stop]
                        yield _Chunk(path, file, offset, size, part, own)

    def _index(self, path: str, file: int) -> NDArray[np.uint64]:
        """Offset and size of the chunks of a shard, [head, chunk, 2]."""
        with self._lock:
            if path in self._indexes:
                self._indexes.move_to_end(path)
                return self._indexes[path]
        shape = (self._heads, self._shard // self._chunk, 2)
        size = 8 * int(np.prod(shape)) + 4
        start = os.fstat(file).st_size - size
        data = os.pread(file, size, start) if start >= 0 else b""
        if len(data) != size or google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise Damaged(f"reading {path}", "an index that is not as written", "the index of a shard", _REMEDY)
        index = np.frombuffer(data[:-4], "<u8").reshape(shape)
        with self._lock:
            self._indexes[path] = index
            while len(self._indexes) > _HELD_INDEXES:
                self._indexes.popitem(last=False)
        return index

    def _work(self, todo: Iterator[_Chunk], put: Put) -> None:
        room = np.empty(self._chunk, self._dtype)
        for chunk in todo:
            try:
                codes = self._decode(os.pread(chunk.file, chunk.size, chunk.offset), room)
            except MemoryError:
                raise
            except Exception as error:  # every codec has its own kind of error for bytes that it cannot read
                found = f"a chunk that cannot be decoded ({error})"
                raise Damaged(f"reading {chunk.path}", found, "", _REMEDY) from error
            put(codes[chunk.part], chunk.out)

    def _decode(self, data: Any, room: NDArray[Any]) -> NDArray[Any]:
        """The codes of a chunk, in `room` or not."""
        is_blosc = self._codecs[0] == "blosc"
        if self._codecs[-1] == "zstd":
            data = zstd.decompress(data)
        size = int.from_bytes(data[4:8], "little") if is_blosc else len(data)
        if size != room.nbytes:  # with less than a chunk the room would keep codes of the one before it
            raise ValueError(f"it holds {size} bytes, not {room.nbytes}")
        return np.asarray(blosc.decompress(data, room)) if is_blosc else np.frombuffer(data, self._dtype)


def _plain(codec: Any) -> dict[str, Any]:
    """A codec as the metadata of an array writes it."""
    return {key: dict(value) if key == "configuration" else value for key, value in dict(codec).items()}


class _Cores:
    """Threads that help the one that reads; made by the first read of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._helpers = 0

    def run(self, work: Callable[[], None], pieces: int) -> None:
        """Call `work` in this thread and in helpers, no more than there are `pieces`; raise what any of them raised."""
        pool = self._started() if pieces > 1 else None
        helpers = [pool.submit(work) for _ in range(min(self._helpers, pieces - 1))] if pool else []
        try:
            work()
        finally:
            # What has not begun would find nothing left to do.
            wait([helper for helper in helpers if not helper.cancel()])
        for helper in helpers:
            if not helper.cancelled():
                helper.result()

    def _started(self) -> ThreadPoolExecutor | None:
        with self._lock:
            if self._pool is None:
                mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
                self._helpers = min(mine, _MOST_THREADS) - 1
                if self._helpers:
                    self._pool = ThreadPoolExecutor(self._helpers, "attnstore-decode")
            return self._pool


_cores = _Cores()


def _again() -> None:
    global _cores
    _cores = _Cores()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_again)  # a forked process has the pool without its threads
