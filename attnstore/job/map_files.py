"""This file opens maps that were made elsewhere, npz files or Zarr groups, and reads them a layer at a time."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import zarr
from numpy.typing import NDArray

BLOCK_BYTES = 2**20
"""Bytes that are read from an npz file at a time."""


@dataclass(frozen=True, slots=True)
class Layers:
    """An array [layer, …] in a file; `read(layer)` gives one layer in float32. Layers are asked for in order."""

    shape: tuple[int, ...]
    read: Callable[[int], NDArray[np.float32]]


class MapFiles:
    """The files of one batch, each opened once; `close` closes them. What a foreign file raises comes through."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._archives: dict[Path, zipfile.ZipFile] = {}
        self._groups: dict[Path, dict[str, zarr.Array[Any]]] = {}

    def names(self, path: Path) -> list[str]:
        """The arrays in a file or group."""
        if path.is_dir():
            return list(self._group(path))
        return [name.removesuffix(".npy") for name in self._archive(path).namelist()]

    def layers(self, path: Path, name: str) -> Layers | None:
        """One array of a file or group; None where it has none of that name."""
        if path.is_dir():
            array = self._group(path).get(name)
            return None if array is None else Layers(array.shape, lambda layer: _floats(np.asarray(array[layer])))
        archive = self._archive(path)
        if f"{name}.npy" not in archive.NameToInfo:
            return None
        return _member(self._open.enter_context(archive.open(f"{name}.npy")))

    def close(self) -> None:
        """Close every file."""
        self._open.close()

    def __enter__(self) -> "MapFiles":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _archive(self, path: Path) -> zipfile.ZipFile:
        if path not in self._archives:
            self._archives[path] = self._open.enter_context(zipfile.ZipFile(path))
        return self._archives[path]

    def _group(self, path: Path) -> Mapping[str, "zarr.Array[Any]"]:
        if path not in self._groups:
            self._groups[path] = dict(_arrays(zarr.open_group(path, mode="r")))
        return self._groups[path]


def _arrays(group: "zarr.Group", prefix: str = "") -> "Iterator[tuple[str, zarr.Array[Any]]]":
    for name, member in group.members():
        if isinstance(member, zarr.Group):
            yield from _arrays(member, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", member


def _member(stream: IO[bytes]) -> Layers:
    """An array in a member of an npz file. Such a file cannot be mapped into memory, but read from front to back."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    found, is_fortran, dtype = read_header(stream)
    shape = tuple(int(size) for size in found)
    layers = shape[0] if shape else 0
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")  # numpy's own words
    if is_fortran and len(shape) > 1:
        whole = np.frombuffer(stream.read(), dtype).reshape(shape, order="F")
        return Layers(shape, lambda layer: _floats(whole[layer]))
    size = int(np.prod(shape[1:], dtype=np.int64))
    following = 0

    def read(layer: int) -> NDArray[np.float32]:
        nonlocal following
        if layer != following:
            raise ValueError(f"layer {layer} is asked for after layer {following - 1}")
        following += 1
        values = np.empty(size, np.float32)
        step = max(1, BLOCK_BYTES // dtype.itemsize)
        for start in range(0, size, step):
            wanted = min(step, size - start) * dtype.itemsize
            data = stream.read(wanted)
            if len(data) != wanted:
                raise ValueError("it ends too early")
            values[start : start + step] = _floats(np.frombuffer(data, dtype))
        if following == layers:
            stream.read(1)  # the end: zipfile compares its checksum
        return values.reshape(shape[1:])

    return Layers(shape, read)


def _floats(values: NDArray[Any]) -> NDArray[np.float32]:
    if values.dtype.kind not in "fiu":
        raise ValueError(f"it holds {values.dtype}, not numbers")
    with np.errstate(over="ignore"):  # infinity is refused with the sums of the rows
        return values.astype(np.float32, copy=False)
