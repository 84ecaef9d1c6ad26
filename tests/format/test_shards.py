"""Tests of reading shards chunk by chunk, against zarr-python and arrays in memory."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.typing import NDArray

from attnstore.errors import Damaged
from attnstore.format import arrays
from attnstore.format.arrays import ArraySpec, MapsWriter
from attnstore.format.shards import Shards

LAYERS, HEADS, CELLS = 2, 3, 1000
FOLDER = "maps.zarr/weights"


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> NDArray[Any]:
    """An array in chunks of 64 cells and shards of 256, and what it holds."""
    monkeypatch.setattr(arrays, "CHUNK_CELLS", 64)
    monkeypatch.setattr(arrays, "SHARD_CELLS", 256)
    numbers = (np.random.default_rng(0).random((LAYERS, HEADS, CELLS)) * 200).astype(dtype)
    writer = MapsWriter(folder / "maps.zarr", {"weights": ArraySpec(LAYERS, HEADS, CELLS, dtype, 255)})
    for layer in range(LAYERS):
        writer.append("weights", layer, numbers[layer])
    writer.close()
    return numbers


def opened(folder: Path) -> Shards:
    found = Shards.of(zarr.open_array(folder / FOLDER, mode="r"), folder / FOLDER)
    assert found is not None
    return found


def copy(codes: NDArray[Any], out: NDArray[Any]) -> None:
    out[...] = codes


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8", "uint32"])
def test_any_box_of_cells_is_read_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    numbers = write(tmp_path, monkeypatch, dtype)
    shards, rng = opened(tmp_path), np.random.default_rng(1)
    for _ in range(30):
        layer, head, cell = (slice(*sorted(rng.choice(n + 1, 2, replace=False).tolist())) for n in numbers.shape)
        out = np.full([part.stop - part.start for part in (layer, head, cell)], 255, dtype)
        shards.read(layer, head, cell, out, copy)
        np.testing.assert_array_equal(out, numbers[layer, head, cell])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "it is missing"),
        (lambda path: os.truncate(path, 20), "index that is not as written"),
        (lambda path: os.truncate(path, path.stat().st_size - 1), "index that is not as written"),
        (lambda path: path.write_bytes(b"x" * 40 + path.read_bytes()[40:]), "cannot be decoded"),
    ],
    ids=["gone", "short", "a byte short", "overwritten"],
)
def test_a_shard_that_is_not_as_written_is_damage_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], message: str
) -> None:
    write(tmp_path, monkeypatch, "float16")
    change(tmp_path / FOLDER / "c/1/0/2")
    out, every = np.empty((1, HEADS, CELLS), np.float16), (slice(0, HEADS), slice(0, CELLS))
    shards = opened(tmp_path)
    shards.read(slice(0, 1), *every, out, copy)
    with pytest.raises(Damaged, match=f"weights/c/1/0/2: .*{message}"):
        shards.read(slice(1, 2), *every, out, copy)


def test_a_chunk_that_was_not_written_is_damage(tmp_path: Path) -> None:
    spec = ArraySpec(1, 2, 10, "uint8", 255, kept_heads=(1,))
    writer = MapsWriter(tmp_path / "maps.zarr", {"weights": spec})
    writer.append("weights", 0, np.ones((1, 10), np.uint8))
    writer.close()
    shards, out = opened(tmp_path), np.zeros((1, 1, 10), np.uint8)
    shards.read(slice(0, 1), slice(1, 2), slice(0, 10), out, copy)
    assert out.all()
    with pytest.raises(Damaged, match="no chunk holds"):
        shards.read(slice(0, 1), slice(0, 1), slice(0, 10), out, copy)


def test_an_array_that_is_laid_out_otherwise_is_left_to_zarr(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"shape": (1, 2, 8), "dtype": "float16", "chunks": (1, 1, 4)}
    for number, options in enumerate(({}, {"shards": (1, 1, 8)}, {"shards": (1, 2, 8), "compressors": None})):
        array = zarr.create_array(tmp_path / str(number), **plain, **options)
        assert Shards.of(array, tmp_path) is None
    assert Shards.of(zarr.create_array(tmp_path / "whole", **plain, shards=(1, 2, 8)), tmp_path) is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_reads_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = write(tmp_path, monkeypatch, "float32")
    shards, out = opened(tmp_path), np.empty_like(numbers)
    box = (slice(0, LAYERS), slice(0, HEADS), slice(0, CELLS))
    shards.read(*box, out, copy)
    child = os.fork()
    if child == 0:
        out[:] = 0
        shards.read(*box, out, copy)
        os._exit(0 if np.array_equal(out, numbers) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
