"""The appending shard writer makes arrays that every Zarr reader reads, and damage never reads as numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.quantise import PRECISIONS

PIPELINES = ("zarr.core.codec_pipeline.BatchedCodecPipeline", "zarrs.ZarrsCodecPipeline")


def write(path: Path, values: np.ndarray[Any, Any], step: int, **spec: Any) -> None:
    layers, heads, cells = values.shape
    maps = MapsWriter(path, {"encoder": ArraySpec(layers, heads, cells, str(values.dtype), np.nan, **spec)})
    for layer in range(layers):
        for start in range(0, cells, step):
            maps.append("encoder", layer, values[layer, :, start : start + step])
    maps.close()


def read(path: Path, pipeline: str) -> "zarr.Array[Any]":
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        array = zarr.open_group(path, mode="r")["encoder"]
    assert isinstance(array, zarr.Array)
    return array


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
@pytest.mark.parametrize("cells", [1, 7, 65_536, 65_537, 200_000])
def test_what_is_appended_is_read_back(tmp_path: Path, pipeline: str, dtype: str, cells: int) -> None:
    values = (np.random.default_rng(cells).random((2, 3, cells)) * 200).astype(dtype)
    maps = MapsWriter(tmp_path / "m", {"encoder": ArraySpec(2, 3, cells, dtype, 255 if dtype == "uint8" else np.nan)})
    for layer in range(2):
        for start in range(0, cells, 9_999):
            maps.append("encoder", layer, values[layer, :, start : start + 9_999])
    maps.close()
    array = read(tmp_path / "m", pipeline)
    assert np.array_equal(array[:], values)
    assert np.array_equal(array[1:2, 2:3, cells // 2 :], values[1:2, 2:3, cells // 2 :])


def test_shards_end_where_the_rule_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.format.arrays.CHUNK_CELLS", 8)
    monkeypatch.setattr("attnstore.format.arrays.SHARD_CELLS", 24)
    values = np.arange(2 * 2 * 60, dtype=np.float32).reshape(2, 2, 60)
    write(tmp_path / "m", values, 7)
    # 60 cells in shards of 24: three shards for each of two layers.
    shards = sorted(p.relative_to(tmp_path / "m").as_posix() for p in (tmp_path / "m").rglob("c/*/0/*"))
    assert shards == [f"encoder/c/{layer}/0/{shard}" for layer in range(2) for shard in range(3)]
    for pipeline in PIPELINES:
        assert np.array_equal(read(tmp_path / "m", pipeline)[:], values)


def test_a_shard_of_many_heads_stays_below_256_mib() -> None:
    spec = ArraySpec(2, 4096, 10**9, "float16", np.nan)
    assert spec.shard * 4096 * 2 <= 256 * 2**20
    assert ArraySpec(2, 12, 10**9, "float16", np.nan).shard == 2**22


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_layers_and_heads_that_are_not_kept_read_as_nan_under_their_own_numbers(tmp_path: Path, pipeline: str) -> None:
    values = np.random.default_rng(1).random((3, 4, 100)).astype(np.float32)
    spec = ArraySpec(3, 4, 100, "float32", np.nan, kept_layers=(1,), kept_heads=(0, 3))
    maps = MapsWriter(tmp_path / "m", {"encoder": spec})
    assert [maps.keeps("encoder", layer) for layer in range(3)] == [False, True, False]
    maps.append("encoder", 1, values[1, [0, 3]])
    maps.close()
    found = read(tmp_path / "m", pipeline)[:]
    assert np.array_equal(found[1, [0, 3]], values[1, [0, 3]])
    found[1, [0, 3]] = np.nan
    assert np.isnan(found).all()


def test_missing_cells_are_an_error_at_the_end(tmp_path: Path) -> None:
    maps = MapsWriter(tmp_path / "m", {"encoder": ArraySpec(1, 1, 10, "float32", np.nan)})
    maps.append("encoder", 0, np.zeros((1, 9), np.float32))
    with pytest.raises(AssertionError, match="9 of 10 cells"):
        maps.close()


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_flipped_bit_never_reads_as_a_number(tmp_path: Path, pipeline: str, precision: str) -> None:
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.full(50, 0.1), (2, 2, 40)).astype(np.float32).reshape(2, 2, -1)
    code = PRECISIONS[precision]
    values = code.encode(weights)
    maps = MapsWriter(tmp_path / "m", {"encoder": ArraySpec(2, 2, 2000, code.dtype, code.fill)})
    for layer in range(2):
        maps.append("encoder", layer, values[layer])
    maps.close()
    shard = tmp_path / "m" / "encoder" / "c" / "1" / "0" / "0"
    good = shard.read_bytes()
    silent = caught = 0
    for position in rng.integers(0, len(good), 40):
        bad = bytearray(good)
        bad[position] ^= 1 << int(rng.integers(8))
        shard.write_bytes(bad)
        for head in range(2):
            try:
                found = read(tmp_path / "m", pipeline)[1:2, head : head + 1, 100:900]
            except Exception:
                caught += 1
            else:
                silent += not np.array_equal(found[0, 0], values[1, head, 100:900])
    assert silent == 0
    # Each flip lies in one head's chunk or in the index: reading both heads meets every one of them.
    assert caught >= 40
