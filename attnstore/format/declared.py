"""This file opens an array of maps once its metadata names only what the format allows."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import zarr
import zarr.storage

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.manifest import load
from attnstore.format.remote import Place, Remote

DTYPES = ("float16", "float32", "uint8", "uint32")
CODECS = ("bytes", "blosc", "zstd", "crc32c", "sharding_indexed", "transpose")
DIMENSIONS = ["layer", "head", "cell"]
CHUNK_BYTES = 64 * 2**20
"""A declared inner chunk is no larger: a small file must not unpack into all memory."""


def open_array(folder: Place, name: str, sha256: str | None = None) -> "zarr.Array[Any]":
    """The array `name` of a segment's maps, once its metadata names only what this format allows.

    Damaged otherwise, or where the metadata has not this `sha256`, before a byte of data is read.
    """
    place = folder / names.MAPS / name
    path = place / "zarr.json"
    metadata = load(path, sha256)
    doing = f"opening {path}"
    try:
        used = list(_codecs(metadata["codecs"]))
        shape, inner = metadata["shape"], _inner_chunk(metadata)
        dtype = str(metadata["data_type"])
        version = metadata["zarr_format"]
        sizes = [int(size) for size in (*shape, *inner)]
        chunk_cells = math.prod(sizes[len(shape) :])
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Damaged(doing, f"no complete metadata ({error!r})") from error
    foreign = [codec for codec in used if codec not in CODECS]
    if version != 3 or foreign or dtype not in DTYPES:
        raise Damaged(doing, f"zarr {version}, {dtype}, codecs {used}", f"zarr 3, {DTYPES}, codecs {CODECS}")
    chunk_bytes = chunk_cells * np.dtype(dtype).itemsize
    if len(shape) != 3 or len(inner) != 3 or min(sizes) < 0 or min(sizes[3:]) < 1 or chunk_bytes > CHUNK_BYTES:
        raise Damaged(doing, f"shape {shape} in chunks {inner}", "three dimensions in chunks of 64 MiB at most")
    if metadata.get("dimension_names") != DIMENSIONS:
        raise Damaged(doing, f"dimensions {metadata.get('dimension_names')}", ", ".join(DIMENSIONS))
    try:
        if isinstance(place, Remote):
            # From the metadata that was checked: opening would fetch them once more.
            objects = zarr.storage.ObjectStore(place.objects, read_only=True)
            return zarr.Array.from_dict(zarr.storage.StorePath(objects, place.path), metadata)
        return zarr.open_array(place, mode="r")
    except Exception as error:  # zarr raises errors of many types on metadata that it cannot use
        raise Damaged(doing, f"no readable array ({error})") from error


def _codecs(codecs: list[dict[str, Any]]) -> Iterator[str]:
    for codec in codecs:
        yield str(codec["name"])
        configuration = codec.get("configuration", {})
        for inner in ("codecs", "index_codecs"):
            yield from _codecs(configuration.get(inner, []))


def _inner_chunk(metadata: dict[str, Any]) -> list[int]:
    for codec in metadata["codecs"]:
        if codec["name"] == "sharding_indexed":
            return list(codec["configuration"]["chunk_shape"])
    return list(metadata["chunk_grid"]["configuration"]["chunk_shape"])
