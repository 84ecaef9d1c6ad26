"""This file reads the metadata of an array: only what the format allows, with parameters that it allows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnstore.format.json_text import count, mapping, one_of
from attnstore.format.limits import CHUNK_BYTES, SHARD_BYTES, SHARD_CHUNKS

FILLS: Mapping[str, object] = {"float16": "NaN", "float32": "NaN", "uint8": 255, "uint32": 2**32 - 1}
"""The types of an array, and what a cell of each reads as where no chunk holds it: never a weight."""

DIMENSIONS = ["layer", "head", "cell"]

_KEYS = {
    *("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"),
    *("attributes", "dimension_names", "storage_transformers"),
}
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in its files: a file for each `outer` chunk, which holds `inner` chunks, encoded by `codecs`.

    Without shards, both are the same. `index` is the bytes of a shard's index, 0 without; `is_index_first` where it
    lies.
    """

    dtype: str
    shape: tuple[int, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    codecs: tuple[str, ...]
    index: int
    is_index_first: bool

    @property
    def chunk_bytes(self) -> int:
        """Bytes of an inner chunk, decoded."""
        return math.prod(self.inner) * np.dtype(self.dtype).itemsize


def layout(metadata: object) -> Layout:
    """The layout that the metadata declare. ValueError, TypeError or KeyError for what the format does not allow."""
    value = mapping(metadata)
    _check_keys(value)
    if (value["zarr_format"], value["node_type"]) != (3, "array"):
        raise ValueError(f"zarr_format {value['zarr_format']!r}, node_type {value['node_type']!r}")
    dtype = str(one_of(tuple(FILLS), value["data_type"]))
    if value.get("dimension_names") != DIMENSIONS:
        raise ValueError(f"dimensions {value.get('dimension_names')!r}, not {', '.join(DIMENSIONS)}")
    if type(value["fill_value"]) is not type(FILLS[dtype]) or value["fill_value"] != FILLS[dtype]:
        raise ValueError(f"the fill value {value['fill_value']!r}, which reads as a weight")
    shape = _sizes(value["shape"], least=0)
    grid = _configured(value["chunk_grid"], "regular", {"chunk_shape"})
    outer = _sizes(grid["chunk_shape"])
    keys = _configured(value["chunk_key_encoding"], "default", {"separator"})
    if keys.get("separator", "/") != "/":
        raise ValueError(f"chunk keys with {keys['separator']!r}")
    first, *others = value["codecs"]
    if isinstance(first, Mapping) and first.get("name") == "sharding_indexed":
        if others:
            raise ValueError("codecs around shards")
        return _sharded(dtype, shape, outer, first)
    found = Layout(dtype, shape, outer, outer, _chain(value["codecs"]), 0, False)
    return _within_limits(found)


def _sharded(dtype: str, shape: tuple[int, ...], outer: tuple[int, ...], codec: Mapping[str, Any]) -> Layout:
    given = _configured(codec, "sharding_indexed", {"chunk_shape", "codecs", "index_codecs", "index_location"})
    inner, index = _sizes(given["chunk_shape"]), _chain(given["index_codecs"])
    if (
        index not in (("bytes", "crc32c"), ("bytes",))
        or given["index_codecs"][0]["configuration"]["endian"] != "little"
    ):
        raise ValueError(f"an index with codecs {', '.join(index)}")
    if any(whole % part for whole, part in zip(outer, inner, strict=True)):
        raise ValueError(f"shards of {outer} in chunks of {inner}")
    n_chunks = math.prod(outer) // math.prod(inner)
    if n_chunks > SHARD_CHUNKS:
        raise ValueError(f"shards of {n_chunks} chunks, not {SHARD_CHUNKS} at most")
    where = one_of(("start", "end"), given.get("index_location", "end"))
    size = 16 * n_chunks + 4 * ("crc32c" in index)
    return _within_limits(Layout(dtype, shape, outer, inner, _chain(given["codecs"]), size, where == "start"))


def _within_limits(found: Layout) -> Layout:
    for what, sizes, most in (("chunks", found.inner, CHUNK_BYTES), ("shards", found.outer, SHARD_BYTES)):
        if (size := math.prod(sizes) * np.dtype(found.dtype).itemsize) > most:
            raise ValueError(f"{what} of {size} bytes, not {most} at most")
    return found


def _chain(codecs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of codecs that make bytes of a chunk: first how it is laid out, then what packs it."""
    found = []
    for codec in codecs:
        name = str(codec["name"])
        allowed, check = _CODECS[one_of(tuple(_CODECS), name)]
        check(_configured(codec, name, allowed))
        found.append(name)
    at = found.index("bytes")
    packed = found[at + 1 :]
    if set(found[:at]) - {"transpose"} or "transpose" in packed or len(set(packed)) < len(packed) or "bytes" in packed:
        raise ValueError(f"codecs {', '.join(found)}")
    if "zstd" in packed and "blosc" in packed and packed.index("zstd") < packed.index("blosc"):
        raise ValueError("zstd within blosc")
    return tuple(found)


def _check_keys(value: Mapping[str, Any]) -> None:
    if value.get("storage_transformers"):
        raise ValueError("storage transformers")
    mapping(value.get("attributes", {}))
    for name in value.keys() - _KEYS:
        other = value[name]
        if not isinstance(other, Mapping) or other.get("must_understand", True) is not False:
            raise ValueError(f"the key {name[:80]!r}, which a reader must understand")


def _configured(value: object, name: str, allowed: set[str]) -> dict[str, Any]:
    """The configuration of a codec or grid, whose name it must have; no key but those that are allowed."""
    given = mapping(value)
    configuration = mapping(given.get("configuration", {}))
    if given["name"] != name or given.keys() - {"name", "configuration"} or configuration.keys() - allowed:
        raise ValueError(f"{str(value)[:200]}, not {name} with {', '.join(sorted(allowed)) or 'nothing'}")
    return configuration


def _sizes(value: object, least: int = 1) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) != len(DIMENSIONS):
        raise ValueError(f"{str(value)[:80]}, not three sizes")
    return tuple(count(size, least=least) for size in value)


def _bytes(given: Mapping[str, Any]) -> None:
    one_of(("little", "big"), given.get("endian", "little"))


def _blosc(given: Mapping[str, Any]) -> None:
    one_of(_COMPRESSORS, given["cname"])
    one_of(_SHUFFLES, given["shuffle"])
    for key, most in (("clevel", 9), ("typesize", 255), ("blocksize", CHUNK_BYTES)):
        count(given.get(key, 1), most)


def _zstd(given: Mapping[str, Any]) -> None:
    count(given.get("level", 0), 22, -(2**17))
    if not isinstance(given.get("checksum", False), bool):
        raise ValueError(f"checksum {given['checksum']!r}")


def _transpose(given: Mapping[str, Any]) -> None:
    if not isinstance(given["order"], list) or sorted(given["order"]) != [0, 1, 2]:
        raise ValueError(f"the order {str(given['order'])[:80]}")


_CODECS: Mapping[str, tuple[set[str], Callable[[Mapping[str, Any]], None]]] = {
    "bytes": ({"endian"}, _bytes),
    "transpose": ({"order"}, _transpose),
    "blosc": ({"cname", "clevel", "shuffle", "typesize", "blocksize"}, _blosc),
    "zstd": ({"level", "checksum"}, _zstd),
    "crc32c": (set(), lambda given: None),
}
