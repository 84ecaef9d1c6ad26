"""This file checks the maps of a segment against its tables: shapes, codecs, offsets, and on request every row."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import zarr

from attnstore.errors import Damaged
from attnstore.format import names
from attnstore.format.arrays import read_cells
from attnstore.format.manifest import Kind, StoreInfo, Unit, load
from attnstore.format.quantise import PRECISIONS, Precision

DTYPES = ("float16", "float32", "uint8", "uint32")
CODECS = ("bytes", "blosc", "zstd", "crc32c", "sharding_indexed", "transpose")
CHUNK_BYTES = 64 * 2**20
"""A declared inner chunk is no larger: a small file must not unpack into all memory."""

SOFTMAX_ERROR = 1e-3
"""Row sums may be off by this beyond rounding: weights computed in half precision come so."""

Broken = tuple[str, str, str]
"""Rule, file, what was found."""


def open_array(folder: Path, name: str) -> "zarr.Array[Any]":
    """The array `name` of a segment's maps, once its metadata names only what this format allows.

    Damaged otherwise, before a byte of data is read.
    """
    path = folder / names.MAPS / name / "zarr.json"
    metadata = load(path)
    doing = f"opening {path}"
    try:
        used = list(_codecs(metadata["codecs"]))
        shape, inner = metadata["shape"], _inner_chunk(metadata)
        dtype = str(metadata["data_type"])
        version = metadata["zarr_format"]
        sizes = [int(size) for size in (*shape, *inner)]
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(doing, f"no complete metadata ({error!r})") from error
    foreign = [codec for codec in used if codec not in CODECS]
    if version != 3 or foreign or dtype not in DTYPES:
        raise Damaged(doing, f"zarr {version}, {dtype}, codecs {used}", f"zarr 3, {DTYPES}, codecs {CODECS}")
    chunk_bytes = int(np.prod(inner, dtype=float)) * np.dtype(dtype).itemsize
    if len(shape) != 3 or min(sizes) < 0 or min(inner) < 1 or chunk_bytes > CHUNK_BYTES:
        raise Damaged(doing, f"shape {shape} in chunks {inner}", "three dimensions in chunks of 64 MiB at most")
    return zarr.open_array(path.parent, mode="r")


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


def check_maps(folder: Path, unit: Unit, info: StoreInfo, *, deep: bool) -> Iterator[Broken]:
    """The rules F8 to F12 that the maps of a segment break."""
    examples = pq.read_table(folder / names.parquet_name("examples")).to_pylist()
    planned = info.segments[int(unit.id)]
    if sorted(row["example"] for row in examples) != list(range(planned.first, planned.stop)):
        yield "F9", "examples.parquet", f"not the examples {planned.first} to {planned.stop} of the plan"
    if info.kept.maps == "none":
        return
    topk = info.kept.topk
    for name, kind in info.kinds.items():
        sides = {"source": "n_tokens", "target": "n_target_tokens"}
        owned = [
            (row[f"cell_{name}"], row[sides[kind.queries]], topk or row[sides[kind.keys]], row["example"])
            for row in examples
            if row[f"cell_{name}"] is not None
        ]
        owned.sort()
        end = 0
        for first, queries, keys, example in owned:
            if first != end:
                yield "F10", "examples.parquet", f"cell_{name} of example {example} is {first}, not {end}"
            end = first + queries * keys
        array_name = f"{name}_topk_weight" if topk else name
        if owned:
            array = open_array(folder, array_name)
            if array.shape != (kind.layers, kind.heads, end):
                wanted = [kind.layers, kind.heads, end]
                yield "F8", f"{names.MAPS}/{array_name}", f"shape {list(array.shape)}, not {wanted}"
            elif deep:
                yield from _rows(folder, info, name, array, owned, kind)


def _rows(
    folder: Path, info: StoreInfo, name: str, array: "zarr.Array[Any]", owned: list[Any], kind: Kind
) -> Iterator[Broken]:
    precision, where = PRECISIONS[info.precision], f"{names.MAPS}/{name}"
    rest = open_array(folder, f"{name}_topk_rest") if info.kept.topk else None
    # A kind may have fewer layers or heads than the largest, which the recipe's numbers are about.
    layers, heads = (
        [number for number in (range(most) if chosen is None else chosen) if number < most]
        for chosen, most in ((info.kept.layers, kind.layers), (info.kept.heads, kind.heads))
    )
    for layer in layers:
        rows_before = 0
        for first, queries, keys, example in owned:
            try:
                codes = read_cells(array, slice(layer, layer + 1), slice(None), slice(first, first + queries * keys))
                left: Any = 0.0
                if rest is not None:
                    left = read_cells(
                        rest, slice(layer, layer + 1), slice(None), slice(rows_before, rows_before + queries)
                    )[0, heads]
            except Exception as error:  # zarr's pipelines raise errors of many types on damaged chunks
                yield "F11", where, f"layer {layer}, example {example}: {error}"
                continue
            rows_before += queries
            worst = _worst_row(precision, codes[0, heads].reshape(len(heads), queries, keys), left)
            if worst is not None:
                head, query, total = worst
                place = f"layer {layer}, head {heads[head]}, example {example}, query {query}"
                yield "F12", where, f"{place}: the row sums to {total:.6g}"


def _worst_row(precision: Precision, codes: Any, left: Any) -> tuple[int, int, float] | None:
    sums = precision.decode(codes).sum(axis=2, dtype=np.float64) + left
    allowed = precision.half_step(codes).sum(axis=2, dtype=np.float64) + SOFTMAX_ERROR
    wrong = np.argwhere(~(np.abs(sums - 1) <= allowed))  # NaN, the fill value, fails the comparison
    if not len(wrong):
        return None
    head, query = (int(index) for index in wrong[0])
    return head, query, float(sums[head, query])
