"""Attacks by arrays of maps: what their metadata declare, and chunks that unpack to gigabytes."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
import zarr

from tests.forging import repin
from tests.hostile.attack import ARRAY, add, harmless, metadata, refused, unlist

SHARDED, BYTES = "sharding_indexed", {"name": "bytes", "configuration": {"endian": "little"}}
GIGABYTE = 2**30


def _codecs(codecs: list[dict[str, Any]]) -> Any:
    """Other inner codecs."""
    return metadata(lambda v: v["codecs"][0]["configuration"].update(codecs=codecs))


def _sharding(**keys: Any) -> Any:
    return metadata(lambda v: v["codecs"][0]["configuration"].update(keys))


def _zstd(**keys: Any) -> dict[str, Any]:
    return {"name": "zstd", "configuration": {"level": 1, "checksum": True, **keys}}


def _blosc(**keys: Any) -> dict[str, Any]:
    given = {"typesize": 2, "cname": "zstd", "clevel": 1, "shuffle": "shuffle", "blocksize": 0, **keys}
    return {"name": "blosc", "configuration": given}


for name, make in {
    "zarr version 2": metadata(lambda v: v.update(zarr_format=2)),
    "a group for an array": metadata(lambda v: v.update(node_type="group")),
    "objects for numbers": metadata(lambda v: v.update(data_type="|O")),
    "a type that is an object": metadata(lambda v: v.update(data_type={"name": "numpy.datetime64"})),
    "complex numbers": metadata(lambda v: v.update(data_type="complex128")),
    "codec pickle": _codecs([BYTES, {"name": "numcodecs.pickle", "configuration": {}}]),
    "codec gzip": _codecs([BYTES, {"name": "gzip", "configuration": {"level": 5}}]),
    "codec of a module": _codecs([BYTES, {"name": "os.system", "configuration": {"command": "x"}}]),
    "codec zstd at level 99": _codecs([BYTES, _zstd(level=99)]),
    "codec zstd with a dictionary": _codecs([BYTES, _zstd(dictionary="../x")]),
    "codec zstd twice": _codecs([BYTES, _zstd(), _zstd()]),
    "codec blosc in zstd in blosc": _codecs([BYTES, _blosc(), _zstd(), _blosc()]),
    "codec zstd in blosc": _codecs([BYTES, _zstd(), _blosc()]),
    "codec blosc with a foreign compressor": _codecs([BYTES, _blosc(cname="../../x.so")]),
    "codec blosc with blocks of terabytes": _codecs([BYTES, _blosc(blocksize=2**42)]),
    "codec transpose of two axes": _codecs(
        [{"name": "transpose", "configuration": {"order": [0, 0, 2]}}, BYTES, _zstd()]
    ),
    "no codec of bytes": _codecs([_zstd()]),
    "shards in shards": metadata(
        lambda v: v["codecs"][0]["configuration"].update(codecs=json.loads(json.dumps(v["codecs"])))
    ),
    "codecs around shards": metadata(lambda v: v["codecs"].append(_zstd())),
    "an index in gzip": _sharding(index_codecs=[BYTES, {"name": "gzip", "configuration": {"level": 1}}]),
    "an index that lies nowhere": _sharding(index_location="middle"),
    "chunks of four gigabytes": _sharding(chunk_shape=[1, 1, 2**31]),
    "chunks of nothing": _sharding(chunk_shape=[1, 1, 0]),
    "chunks of less than nothing": _sharding(chunk_shape=[1, 1, -4]),
    "chunks that do not fill a shard": _sharding(chunk_shape=[1, 2, 7]),
    "chunks of two axes": _sharding(chunk_shape=[1, 1]),
    "shards of terabytes": metadata(lambda v: v["chunk_grid"]["configuration"].update(chunk_shape=[1, 3, 818 * 2**30])),
    "a grid that is not regular": metadata(lambda v: v["chunk_grid"].update(name="rectilinear")),
    "keys of another kind": metadata(lambda v: v["chunk_key_encoding"].update(name="v2")),
    "a shape below nothing": metadata(lambda v: v.update(shape=[2, 3, -818])),
    "a shape of fractions": metadata(lambda v: v.update(shape=[2, 3, 818.0])),
    "a shape of text": metadata(lambda v: v.update(shape="818")),
    "a shape of four axes": metadata(lambda v: v.update(shape=[2, 3, 409, 2])),
    "other dimensions": metadata(lambda v: v.update(dimension_names=["layer", "cell", "head"])),
    "no dimensions": metadata(lambda v: v.pop("dimension_names")),
    "zeros for absent cells": metadata(lambda v: v.update(fill_value=0.0)),
    "a fill value of text": metadata(lambda v: v.update(fill_value="0x0000")),
    "a storage transformer": metadata(lambda v: v.update(storage_transformers=[{"name": "indirect"}])),
    "an extension that must be understood": metadata(lambda v: v.update(virtual={"url": "file:///etc/passwd"})),
    "attributes that are a list": metadata(lambda v: v.update(attributes=[1])),
    "codecs that are a text": metadata(lambda v: v.update(codecs="zstd")),
}.items():
    add(f"array {name}", make, r"opening .*zarr\.json|reading .*zarr\.json")

add("array of 1e15 cells", metadata(lambda v: v.update(shape=[2, 3, 10**15])), "not float16|cells")
add("array of no cells", metadata(lambda v: v.update(shape=[2, 3, 0])), "0 cells")
add("array of other heads", metadata(lambda v: v.update(shape=[2, 4, 818])), "float16")
add(
    "array with an extension that may be passed over",
    metadata(lambda v: v.update(note={"name": "x", "must_understand": False})),
    None,
)


@refused("nested too deep")
def array_metadata_of_brackets(store: Path) -> None:
    """As deep as JSON goes."""
    (store / ARRAY / "zarr.json").write_text('{"attributes":' * 50_000 + "1" + "}" * 50_000)
    repin(store, files=True)


@refused("at most")
def array_metadata_of_megabytes(store: Path) -> None:
    """Of blanks."""
    path = store / ARRAY / "zarr.json"
    path.write_text(path.read_text() + " " * 2**21)
    repin(store, files=True)


def _shard(
    store: Path, chunk: Callable[[bytes], bytes], place: Callable[[int, int], tuple[int, int]] | None = None
) -> None:
    """Encode the first layer's chunks anew, and lie about where they are."""
    path = store / ARRAY / "c/0/0/0"
    data = path.read_bytes()
    index = np.frombuffer(data[-52:-4], "<u8").reshape(3, 2)
    body, entries = b"", []
    for offset, size in index.tolist():
        packed = chunk(data[offset : offset + size])
        entries.append((len(body), len(packed)) if place is None else place(len(body), len(packed)))
        body += packed
    written = struct.pack("<6Q", *(number for entry in entries for number in entry))
    path.write_bytes(body + written + google_crc32c.value(written).to_bytes(4, "little"))
    repin(store, files=True)


def _zeros() -> bytes:
    """A gigabyte, in 30 kB."""
    return bytes(numcodecs.Zstd(1).encode(np.zeros(GIGABYTE, np.uint8)))


@refused("unpacks to|bytes for a chunk|a chunk of")
def bomb_of_zstd(store: Path) -> None:
    """Behind a small declared chunk."""
    _shard(store, lambda data: _zeros())


@refused("unpacks to")
def bomb_of_many_frames(store: Path) -> None:
    """Each of them small: their sizes add up."""
    part = bytes(numcodecs.Zstd(1).encode(np.zeros(1500, np.uint8)))
    _shard(store, lambda data: part * 100)


@refused("unpacks to")
def bomb_that_states_no_size(store: Path) -> None:
    """Blocks that repeat one byte, in a frame that leaves its size out."""
    blocks = b"".join(((2**17 << 3) | 2).to_bytes(3, "little") + b"\0" for _ in range(1000))
    last = ((1 << 3) | 3).to_bytes(3, "little") + b"\0"
    _shard(store, lambda data: struct.pack("<I", 0xFD2FB528) + b"\x00\x88" + blocks + last)


@refused("it holds 1073741824 bytes|unpacks to")
def bomb_of_blosc_in_zstd(store: Path) -> None:
    """The outer size is honest."""
    inner = bytes(numcodecs.Blosc("zstd", 9, 1).encode(np.zeros(2**20, np.uint8)))
    inner = inner[:4] + struct.pack("<I", GIGABYTE) + inner[8:]
    _shard(store, lambda data: bytes(numcodecs.Zstd(1, checksum=True).encode(inner)))


@refused("than it states")
def blosc_longer_than_it_is(store: Path) -> None:
    """A decoder that believed it would read beyond the buffer."""
    inner = struct.pack("<4B3I", 2, 1, 0x81, 2, 818 * 2, 818 * 2, 2**24) + b"\xff" * 64
    _shard(store, lambda data: bytes(numcodecs.Zstd(1, checksum=True).encode(inner)))


@refused("cannot be decoded")
def blosc_of_rubbish(store: Path) -> None:
    """With sizes that fit."""
    inner = struct.pack("<4B3I", 2, 1, 0x81, 2, 818 * 2, 818 * 2, 80) + b"\xff" * 64
    _shard(store, lambda data: bytes(numcodecs.Zstd(1, checksum=True).encode(inner)))


@refused("beyond its end")
def an_index_beyond_the_file(store: Path) -> None:
    """By far."""
    _shard(store, lambda data: data, lambda offset, size: (offset + 10**12, size))


@refused("beyond its end")
def an_index_that_wraps(store: Path) -> None:
    """The sum of offset and size overflows 64 bits."""
    _shard(store, lambda data: data, lambda offset, size: (2**64 - 8, 16))


@refused("a chunk of")
def an_index_of_one_chunk_for_all(store: Path) -> None:
    """A chunk as large as the file."""
    filler = b"\0" * 200_000
    _shard(store, lambda data: data + filler, lambda offset, size: (0, 200_000))


@refused("no chunk holds")
def an_index_without_chunks(store: Path) -> None:
    """Cells that read as the fill value."""
    _shard(store, lambda data: data, lambda offset, size: (2**64 - 1, 2**64 - 1))


def _rewritten(store: Path, **options: Any) -> Path:
    """The same weights, laid out as others may; the chunk of the first layer and head."""
    place = store / ARRAY
    before = zarr.open_array(place, mode="r")
    codes, kept = np.asarray(before[:]), dict(before.attrs)
    shutil.rmtree(place)
    after = zarr.create_array(
        place,
        shape=codes.shape,
        dtype=codes.dtype,
        fill_value=np.nan,
        dimension_names=("layer", "head", "cell"),
        attributes=kept,
        **options,
    )
    after[:] = codes
    unlist(
        store,
        "maps.zarr/encoder/",
        added=tuple(
            path.relative_to(place.parents[1]).as_posix() for path in sorted(place.rglob("*")) if path.is_file()
        ),
    )
    return place / "c/0/0/0"


@harmless
def weights_laid_out_by_others(store: Path) -> None:
    """Each head in a file of its own, without shards."""
    _rewritten(store, chunks=(1, 1, 300))


@harmless
def weights_in_shards_of_others(store: Path) -> None:
    """Chunks of all layers, big-endian."""
    _rewritten(store, chunks=(2, 1, 200), shards=(2, 3, 1000), serializer=zarr.codecs.BytesCodec(endian="big"))


@refused("32787 bytes for a chunk of 600")
def bomb_laid_out_by_others(store: Path) -> None:
    """It would be zarr that unpacks it."""
    _rewritten(store, chunks=(1, 1, 300)).write_bytes(_zeros())
    repin(store, files=True)


@refused("unpacks to")
def bomb_of_blosc_laid_out_by_others(store: Path) -> None:
    """Blosc alone, in whose header a gigabyte stands."""
    path = _rewritten(store, chunks=(1, 1, 300), compressors=zarr.codecs.BloscCodec(typesize=2))
    data = path.read_bytes()
    path.write_bytes(data[:4] + struct.pack("<I", GIGABYTE) + data[8:])
    repin(store, files=True)


@refused("bytes for a chunk of")
def a_chunk_of_gigabytes_laid_out_by_others(store: Path) -> None:
    """A sparse file: without a compressor, what lies there is what is read."""
    path = _rewritten(store, chunks=(1, 1, 300), compressors=None)
    with path.open("r+b") as file:
        file.truncate(300 * 2**20)
    repin(store, files=True)


@refused("in a file of")
def an_index_of_others_that_lies(store: Path) -> None:
    """The shard's own reader is zarr's."""
    path = _rewritten(store, chunks=(1, 1, 200), shards=(1, 1, 1000))
    data = bytearray(path.read_bytes())
    index = struct.pack("<10Q", *[10**15, 400] * 5)
    data[-84:] = index + google_crc32c.value(index).to_bytes(4, "little")
    path.write_bytes(data)
    repin(store, files=True)
