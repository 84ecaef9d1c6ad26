"""This file reads cells of the sharded arrays that `arrays.py` writes: chunk by chunk, on all cores, to where they go.

A general reader returns a whole array of codes, which then has to be converted: that is memory written and read twice,
and about a millisecond of bookkeeping a call. Here a chunk is converted while it is in the cache.
"""

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import google_crc32c
import numpy as np
from numcodecs import blosc, zstd  # pyright: ignore[reportAttributeAccessIssue]  # compiled, without stubs
from numpy.typing import NDArray

from attnstore.errors import AttnStoreError, Damaged
from attnstore.format.file_checks import ShardChecks
from attnstore.format.shard_source import Folder, Shard, Source
from attnstore.format.unpacked import blosc_size, slack, zstd_most

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

    shard: Shard
    offset: int
    size: int
    part: slice
    out: NDArray[Any]


class Shards:
    """The cells of one array [layer, head, cell], each shard one layer's. Threads may share it."""

    def __init__(
        self,
        source: Path | Source,
        heads: int,
        dtype: str,
        chunk: int,
        shard: int,
        codecs: Sequence[str],
        checks: ShardChecks | None = None,
    ) -> None:
        self._checks = checks
        self._source: Source = Folder(source) if isinstance(source, Path) else source
        self._heads, self._dtype = heads, np.dtype(dtype).newbyteorder("<")
        self._chunk, self._shard, self._codecs = chunk, shard, tuple(codecs)
        self._most = slack(chunk * self._dtype.itemsize)
        self._indexes: OrderedDict[str, NDArray[np.uint64]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, array: "zarr.Array[Any]", source: Path | Source, checks: ShardChecks | None = None) -> "Shards | None":
        """The array in this folder or source; None unless it is laid out as this format's own writer does.

        `checks` hold each shard against the manifest when it is first used.
        """
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
        if not is_ours:
            return None
        return cls(source, heads, str(array.dtype), given["chunk_shape"][2], shard, names, checks)

    def keys(self, layer: slice, head: slice, cell: slice) -> Iterator[str]:
        """The names of the shards that hold these cells, such as c/0/0/0."""
        for number in range(layer.start, layer.stop):
            for shard in range(cell.start // self._shard, -(-cell.stop // self._shard)):
                yield f"c/{number}/0/{shard}"

    def read(self, layer: slice, head: slice, cell: slice, out: NDArray[Any], put: Put) -> None:
        """Put the codes of these cells to `out` [layer, head, cell]; Damaged for a chunk that is not there or sound."""
        opened: list[Shard] = []
        try:
            chunks = list(self._chunks(layer, head, cell, out, opened))
            for shard, own in groupby(chunks, lambda chunk: chunk.shard):
                shard.ahead([(chunk.offset, chunk.size) for chunk in own])
            todo = iter(chunks)  # threads may take from the iterator of a list at once
            _cores.run(lambda: self._work(todo, put), len(chunks))
        finally:
            for shard in opened:
                shard.close()

    def _chunks(
        self, layer: slice, head: slice, cell: slice, out: NDArray[Any], opened: list[Shard]
    ) -> Iterator[_Chunk]:
        numbers = range(cell.start // self._shard, -(-cell.stop // self._shard))
        places = [(number, shard) for number in range(layer.start, layer.stop) for shard in numbers]
        for number, shard in places:
            opened.append(self._source.open(f"c/{number}/0/{shard}"))
        for (number, shard), file, index in zip(places, opened, self._indexes_of(opened), strict=True):
            base, length = shard * self._shard, file.size()
            start, stop = max(cell.start - base, 0), min(cell.stop - base, self._shard)
            for chunk in range(start // self._chunk, -(-stop // self._chunk)):
                begin = chunk * self._chunk
                part = slice(max(start - begin, 0), min(stop - begin, self._chunk))
                at = base + begin - cell.start
                for row in range(head.start, head.stop):
                    offset, size = index[row, chunk].tolist()
                    if offset == _ABSENT:
                        raise Damaged(
                            f"reading {file.path}", "cells that no chunk holds", "a weight in every cell", _REMEDY
                        )
                    if offset + size > length:
                        raise Damaged(f"reading {file.path}", "a chunk beyond its end", f"{length} bytes", _REMEDY)
                    if size > self._most:
                        found = f"a chunk of {size} bytes"
                        raise Damaged(f"reading {file.path}", found, f"{self._most} at most", _REMEDY)
                    own = out[number - layer.start, row - head.start, at + part.start : at + part.stop]
                    yield _Chunk(file, offset, size, part, own)

    def _indexes_of(self, opened: Sequence[Shard]) -> list[NDArray[np.uint64]]:
        """Offset and size of the chunks of each shard, [head, chunk, 2]."""
        shape = (self._heads, self._shard // self._chunk, 2)
        size = 8 * math.prod(shape) + 4
        with self._lock:
            found = [self._indexes.get(shard.path) for shard in opened]
            for shard, index in zip(opened, found, strict=True):
                if index is not None:
                    self._indexes.move_to_end(shard.path)
        for shard, index in zip(opened, found, strict=True):
            if index is None:
                shard.ahead([(max(shard.size() - size, 0), min(size, shard.size()))])
        return [
            self._index(shard, shape, size) if index is None else index
            for shard, index in zip(opened, found, strict=True)
        ]

    def _index(self, shard: Shard, shape: tuple[int, int, int], size: int) -> NDArray[np.uint64]:
        path, start = shard.path, shard.size() - size
        data = bytes(shard.read(size, start)) if start >= 0 else b""
        if len(data) != size or google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise Damaged(f"reading {path}", "an index that is not as written", "the index of a shard", _REMEDY)
        if self._checks is not None:
            self._checks.check(path, int.from_bytes(data[-4:], "little"))
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
                codes = self._decode(chunk.shard.read(chunk.size, chunk.offset), room)
            except (MemoryError, AttnStoreError):
                raise
            except Exception as error:  # every codec has its own kind of error for bytes that it cannot read
                found = f"a chunk that cannot be decoded ({error})"
                raise Damaged(f"reading {chunk.shard.path}", found, "", _REMEDY) from error
            put(codes[chunk.part], chunk.out)

    def _decode(self, data: Any, room: NDArray[Any]) -> NDArray[Any]:
        """The codes of a chunk, in `room` or not. What it unpacks to is known before it is unpacked."""
        is_blosc = self._codecs[0] == "blosc"
        if self._codecs[-1] == "zstd":
            if (most := zstd_most(data)) > slack(room.nbytes):
                raise ValueError(f"it unpacks to {most} bytes, for a chunk of {room.nbytes}")
            data = zstd.decompress(data)
        size = blosc_size(data) if is_blosc else len(data)
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
