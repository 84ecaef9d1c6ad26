"""This file writes the maps of one segment as sharded Zarr v3 arrays, chunk by chunk as they come.

A shard of the sharding_indexed codec is its inner chunks in any order and an index at the end, so
it can be appended to while the model runs. zarr-python writes a shard only from all of its cells at
once: 100 MB and more for each layer in hand, against one chunk for each head here.
"""

import hashlib
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, ZstdCodec

from attnstore.format.manifest import File
from attnstore.format.quantise import Codes

CHUNK_CELLS = 65_536
SHARD_CELLS = 2**22
SHARD_BYTES = 256 * 2**20
SEGMENT_BYTES = 512 * 2**20
"""Raw bytes of maps at which a segment closes; a larger example is a segment of its own."""

Each = Callable[..., Iterable[Any]]
"""`map`, or that of a pool of threads."""

_ABSENT = np.iinfo(np.uint64).max


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array [layer, head, cell] of a segment; `kept_layers`, `kept_heads` None means all."""

    layers: int
    heads: int
    cells: int
    dtype: str
    fill: float
    kept_layers: tuple[int, ...] | None = None
    kept_heads: tuple[int, ...] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def chunk(self) -> int:
        """Cells of an inner chunk."""
        most = max(1, SHARD_BYTES // (self.heads * np.dtype(self.dtype).itemsize))
        return min(CHUNK_CELLS, max(self.cells, 1), most)

    @property
    def shard(self) -> int:
        """Cells of a shard: a whole number of chunks, within both limits, no more than the array needs."""
        per_cell = self.heads * np.dtype(self.dtype).itemsize
        most = max(1, min(SHARD_CELLS, SHARD_BYTES // per_cell) // self.chunk)
        return self.chunk * min(most, -(-max(self.cells, 1) // self.chunk))


def _compressors(dtype: str) -> list[Any]:
    # The checksum of zstd is checked by every reader on whole and partial reads; crc32c as an inner
    # codec is not (zarrs, partial reads).
    tail, size = ZstdCodec(level=1, checksum=True), np.dtype(dtype).itemsize
    return [tail] if size == 1 else [BloscCodec(cname="zstd", clevel=1, shuffle="shuffle", typesize=size), tail]


def _encode(codes: Codes) -> bytes:
    data: Any = np.ascontiguousarray(codes)
    if data.dtype.itemsize > 1:
        data = _blosc(data)
    return bytes(numcodecs.Zstd(level=1, checksum=True).encode(data))


_BLOSC_SHUFFLED_ZSTD = 0x81
_LEAST_SPLIT = 128
"""Items below which Blosc's decoder takes the bytes of a block for one stream."""


def _blosc(codes: NDArray[Any]) -> bytes:
    """A Blosc buffer of one block, with a zstd stream for each byte of the items.

    Blosc's own encoder hands all bytes of a block to zstd together, and one Huffman table has to serve both the
    exponents and the last digits. Its decoder knows either layout.
    """
    size, n = codes.dtype.itemsize, codes.size
    if n < _LEAST_SPLIT:
        return bytes(numcodecs.Blosc("zstd", 1, numcodecs.Blosc.SHUFFLE).encode(codes))
    zstd, streams = numcodecs.Zstd(level=1), []
    bits = codes.view(f"<u{size}")
    for place in range(size):
        plain = (bits >> (8 * place) if place else bits).astype(np.uint8)
        packed = zstd.encode(plain)
        streams.append(packed if len(packed) < n else plain.tobytes())
    body = b"".join(len(stream).to_bytes(4, "little") + stream for stream in streams)
    sizes = (size * n, size * n, 20 + len(body), 20)  # of the items, of a block, of the buffer; where the block begins
    return struct.pack("<4B4I", 2, 1, _BLOSC_SHUFFLED_ZSTD, size, *sizes) + body


class _LayerWriter:
    """Appends the cells of one layer, all heads together, in run order."""

    def __init__(self, folder: Path, spec: ArraySpec, each: Each) -> None:
        self.folder, self.spec, self.each = folder, spec, each
        self.heads = tuple(range(spec.heads)) if spec.kept_heads is None else spec.kept_heads
        self.buffer = np.full((len(self.heads), spec.chunk), spec.fill, spec.dtype)
        self.filled = 0  # cells of the open chunk
        self.cells = 0  # cells of the layer so far
        self.file: BufferedWriter | None = None
        self.index = np.empty(0, np.uint64)
        self.digest, self.crc = hashlib.sha256(), 0
        self.written: list[tuple[Path, int, str, str, str]] = []  # path and what a manifest says of each shard

    def append(self, codes: Codes) -> None:
        """Take `codes` [kept head, cell], the next cells of this layer."""
        start, count = 0, codes.shape[1]
        while start < count:
            step = min(count - start, self.spec.chunk - self.filled)
            self.buffer[:, self.filled : self.filled + step] = codes[:, start : start + step]
            self.filled += step
            self.cells += step
            start += step
            if self.filled == self.spec.chunk:
                self._write_chunk()

    def _write_chunk(self) -> None:
        per_shard = self.spec.shard // self.spec.chunk
        chunk = (self.cells - 1) // self.spec.chunk
        if self.file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.file = (self.folder / str(chunk // per_shard)).open("xb")
            self.index = np.full((self.spec.heads, per_shard, 2), _ABSENT, np.uint64)
            self.digest, self.crc = hashlib.sha256(), 0
        for head, data in zip(self.heads, self.each(_encode, self.buffer), strict=True):
            self.index[head, chunk % per_shard] = (self.file.tell(), len(data))
            self._put(self.file, data)
        self.buffer[:] = self.spec.fill
        self.filled = 0
        if chunk % per_shard == per_shard - 1:
            self._close_shard()

    def _close_shard(self) -> None:
        if self.file is None:
            return
        index = self.index.astype("<u8").tobytes()
        of_index = google_crc32c.value(index)
        self._put(self.file, index + of_index.to_bytes(4, "little"))
        hashes = self.digest.hexdigest(), f"{self.crc:08x}", f"{of_index:08x}"
        self.written.append((Path(self.file.name), self.file.tell(), *hashes))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.file = None

    def _put(self, file: BufferedWriter, data: bytes) -> None:
        # Hashed on the way: reading a segment again to seal it would wait behind the model.
        file.write(data)
        self.digest.update(data)
        self.crc = google_crc32c.extend(self.crc, data)

    def close(self) -> None:
        if self.filled:
            self._write_chunk()
        self._close_shard()

    def abandon(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


class MapsWriter:
    """Writes `maps.zarr` of one segment: a group with one array for each name in `specs`.

    Holds one inner chunk for every layer and head; everything else is on disk already. `each` compresses the heads of a
    chunk, one after the other or, as the `map` of a pool, beside each other.
    """

    def __init__(self, path: Path, specs: Mapping[str, ArraySpec], each: Each = map) -> None:
        self.path, self.specs = path, dict(specs)
        group = zarr.create_group(path, zarr_format=3)
        self._layers: dict[tuple[str, int], _LayerWriter] = {}
        for name, spec in self.specs.items():
            group.create_array(
                name,
                shape=(spec.layers, spec.heads, spec.cells),
                chunks=(1, 1, spec.chunk),
                shards=(1, spec.heads, spec.shard),
                dtype=spec.dtype,
                fill_value=spec.fill,
                compressors=_compressors(spec.dtype),
                dimension_names=("layer", "head", "cell"),
                attributes={
                    **spec.attributes,
                    "kept_layers": None if spec.kept_layers is None else list(spec.kept_layers),
                    "kept_heads": None if spec.kept_heads is None else list(spec.kept_heads),
                },
            )
            for layer in range(spec.layers) if spec.kept_layers is None else spec.kept_layers:
                self._layers[name, layer] = _LayerWriter(path / name / "c" / str(layer) / "0", spec, each)

    def keeps(self, name: str, layer: int) -> bool:
        """Whether this layer of the array is written."""
        return (name, layer) in self._layers

    def append(self, name: str, layer: int, codes: Codes) -> None:
        """Take `codes` [kept head, cell]: the next cells of a layer, in run order."""
        self._layers[name, layer].append(codes)

    def close(self) -> list[File]:
        """Write what is buffered and every shard's index, synced to disk; the shards as a manifest lists them.

        Their paths are relative to the folder of the segment. Checks that no cell is missing.
        """
        for (name, layer), writer in self._layers.items():
            if writer.cells != self.specs[name].cells:
                raise AssertionError(f"{name}, layer {layer}: {writer.cells} of {self.specs[name].cells} cells came")
        with ThreadPoolExecutor() as pool:  # compressing, hashing and fsync leave the interpreter to others
            list(pool.map(_LayerWriter.close, self._layers.values()))
        files = []
        for writer in self._layers.values():
            for path, size, sha256, crc32c, of_index in writer.written:
                files.append(File(path.relative_to(self.path.parent).as_posix(), size, sha256, crc32c, of_index))
        return files

    def abandon(self) -> None:
        """Close the files without finishing them; the caller deletes the folder."""
        for writer in self._layers.values():
            writer.abandon()


def read_cells(array: "zarr.Array[Any]", layer: slice, head: slice, cell: slice) -> NDArray[Any]:
    """Codes [layer, head, cell] of a slice. Slices only: on integers zarrs falls back to the slow path."""
    return np.asarray(array[layer, head, cell])
