"""This file reads cells of the stored maps as float32 weights, or says that they are damaged."""

import importlib.util
import math
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import AttnStoreError, Damaged, NotStored
from attnstore.format import names
from attnstore.format.halves import widen
from attnstore.format.quantise import PRECISIONS, Floats
from attnstore.format.remote import Remote
from attnstore.store.contents import Contents
from attnstore.store.rectangles import Rectangle

# Zarr is loaded by the first map: most questions never read one.
if TYPE_CHECKING:
    import zarr

    from attnstore.format.declared import Guarded
    from attnstore.format.file_checks import ShardChecks
    from attnstore.format.shards import Put, Shards
    from attnstore.store.places import Places

NO_KEY = 2**32 - 1
"""Key of an entry that a row of largest weights does not use."""

_ZARRS = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}
_MOST_CHUNK_CELLS = 2**24
_MOST_SHARD_CELLS = 2**31
_REMEDY = "Fetch the store again, or run: attnstore verify"


class Cells:
    """The arrays of a store, opened when they are first read. Threads may share it."""

    def __init__(self, contents: Contents) -> None:
        self.contents, self.info = contents, contents.info
        self.precision = PRECISIONS[self.info.precision]
        self._added = {
            (unit.facts.get("segment"), names.ADDED_MAPS[str(unit.facts.get("evidence"))]): unit.folder
            for unit in contents.additions
            if unit.facts.get("evidence") in names.ADDED_MAPS
        }
        self._arrays: dict[tuple[int, str], tuple[zarr.Array[Any], Shards | Guarded, ShardChecks]] = {}
        self._alike: set[tuple[int, str]] | None = None
        self._lock = threading.Lock()

    @property
    def topk(self) -> int | None:
        """How many weights of a row are kept, or None where all are."""
        return self.info.kept.topk if self.info.kept.maps == "topk" else None

    def kept(self, kind: str) -> tuple[list[int], list[int]]:
        """Layers and heads of a kind whose maps are kept; both empty where no maps are."""
        shape, kept = self.info.kinds[kind], self.info.kept
        if kept.maps == "none":
            return [], []
        layers, heads = (
            list(range(most)) if chosen is None else [number for number in chosen if number < most]
            for chosen, most in ((kept.layers, shape.layers), (kept.heads, shape.heads))
        )
        return layers, heads

    def check_kept(self, kind: str, layers: list[int], heads: list[int], doing: str) -> None:
        """Raise NotStored unless the maps of all these layers and heads are kept."""
        if self.info.kept.maps == "none":
            raise NotStored(doing, "this store kept facts, no maps", "maps", 'Ingest again with [keep] maps = "all"')
        for word, wanted, there in zip(("layer", "head"), (layers, heads), self.kept(kind), strict=True):
            if absent := sorted(set(wanted) - set(there)):
                raise NotStored(
                    doing,
                    f"the maps of {word} {', '.join(map(str, absent))} were not kept",
                    f"{word}s {', '.join(map(str, there))}",
                    f"Ingest again with more in [keep] {word}s",
                )

    def weights(self, segment: int, kind: str, layer: slice, head: slice, cell: slice) -> Floats:
        """Weights [layer, head, cell], 0-1, of a kind's map, or of its largest weights in a store of those."""
        name = f"{kind}_topk_weight" if self.topk else kind
        put = partial(self._put_weights, self._path(segment, name))
        return self._read(segment, name, layer, head, cell, "float32", put)

    def _put_weights(self, path: str, codes: NDArray[Any], out: Floats) -> None:
        if codes.dtype == np.float16:
            if widen(codes, out):
                return
        else:
            out[...] = self.precision.decode(codes)
        if np.isnan(out.sum()):  # what cells of an absent chunk read as
            raise Damaged(f"reading {path}", "cells that no chunk holds", "a weight in every cell", _REMEDY)

    def derivatives(self, of: str, segment: int, kind: str, layer: slice, head: slice, cell: slice) -> Floats:
        """What evidence holds beside these cells [layer, head, cell]: `of` is gradient or integrated.

        NotStored where the store has none, or none of an example among them.
        """
        doing = f"reading {kind} {of}"
        if (names.segment_name(segment), of) not in self._added:
            evidence = next(name for name, suffix in names.ADDED_MAPS.items() if suffix == of)
            remedy = (
                f"Run the recipe of the store again with --set 'keep.evidence=[\"{evidence}\"]', into the same store"
            )
            raise NotStored(doing, f"the store has no {evidence.replace('_', ' ')} there", "that evidence", remedy)
        found: Floats = self._read(segment, f"{kind}_{of}", layer, head, cell, "float32", _copy)
        if np.isnan(found.sum()):
            raise NotStored(
                doing, "cells without a number", "an example with a label or target, whose gradients are all finite"
            )
        return found

    def maps(self, run: "Places", part: Rectangle) -> Iterator[Floats]:
        """The map [layer, head, query, key] of each example of a run, of these layers and heads; views of one read."""
        weights = self.weights(run.segment, run.kind, part.layer, part.head, slice(run.start, run.stop))
        for index in range(len(run)):
            first = int(run.cell[index]) - run.start
            own = weights[..., first : first + int(run.sizes[index])]
            yield own.reshape(*part.shape, int(run.n_rows[index]), int(run.n_keys[index]))

    def keys(self, segment: int, kind: str, layer: slice, head: slice, cell: slice) -> NDArray[np.uint32]:
        """Keys [layer, head, cell] of the largest weights; NO_KEY where a row is shorter."""
        return self._read(segment, f"{kind}_topk_key", layer, head, cell, "uint32", _copy)

    def rest(self, segment: int, kind: str, layer: slice, head: slice, row: slice) -> Floats:
        """Weight [layer, head, query row] that a store of largest weights did not keep."""
        return self._read(segment, f"{kind}_topk_rest", layer, head, row, "float32", _copy)

    def codes(self, segment: int, name: str, layer: slice, head: slice, cell: slice) -> NDArray[Any]:
        """The codes [layer, head, cell] of any array as they are stored, bit for bit."""
        array, _, _ = self._array(segment, name)
        return self._read(segment, name, layer, head, cell, str(array.dtype), _copy)

    def _path(self, segment: int, name: str) -> str:
        return str(self.contents.root / self._unit(segment, name) / names.MAPS / name)

    def _unit(self, segment: int, name: str) -> str:
        """The folder, below the store, of the segment or addition that holds an array."""
        number = names.segment_name(segment)
        added = self._added.get((number, name.rpartition("_")[2]))
        return added or f"{names.SEGMENTS}/{number}"

    def _read(
        self, segment: int, name: str, layer: slice, head: slice, cell: slice, dtype: str, put: "Put"
    ) -> NDArray[Any]:
        """The cells [layer, head, cell] of an array, each run of codes put into the result by `put`."""
        from attnstore.format.shards import Shards

        array, reader, checks = self._array(segment, name)
        if cell.stop > array.shape[2]:
            raise Damaged(
                f"reading {self._path(segment, name)}", f"{array.shape[2]} cells", f"at least {cell.stop}", _REMEDY
            )
        for key in reader.keys(layer, head, cell):
            if not checks.lists(path := f"{self._path(segment, name)}/{key}"):  # before room is made for its cells
                raise Damaged(f"reading {path}", "it is missing", "a shard of the maps", _REMEDY)
        out = np.empty((layer.stop - layer.start, head.stop - head.start, cell.stop - cell.start), dtype)
        if isinstance(reader, Shards):
            reader.read(layer, head, cell, out, put)
        else:
            put(self._codes(reader, checks, segment, name, layer, head, cell), out)
        return out

    def _codes(
        self,
        guarded: "Guarded",
        checks: "ShardChecks",
        segment: int,
        name: str,
        layer: slice,
        head: slice,
        cell: slice,
    ) -> NDArray[Any]:
        """Codes [layer, head, cell] of an array that this package did not write, read by zarrs or by zarr-python."""
        folder = self._path(segment, name)
        for key in guarded.keys(layer, head, cell):
            # Zarr takes an absent shard for one of fill values, and the uint8 of one reads as a weight.
            checks.check(f"{folder}/{key}", None)
        try:
            return guarded.read(layer, head, cell)
        except (MemoryError, AttnStoreError):
            raise
        except Exception as error:  # every codec has its own kind of error for bytes that it cannot read
            culprit = _culprit(guarded, layer, head, cell)
            found = f"a chunk that cannot be decoded ({error})"
            raise Damaged(f"reading {folder}/{culprit}", found, "", _REMEDY) from error

    def _alike_shards(self) -> set[tuple[int, str]]:
        from attnstore.format.file_checks import alike

        if self._alike is None:
            self._alike = alike(self.contents.units)
        return self._alike

    def _array(self, segment: int, name: str) -> "tuple[zarr.Array[Any], Shards | Guarded, ShardChecks]":
        with self._lock:
            if (segment, name) not in self._arrays:
                from attnstore.format.declared import Guarded
                from attnstore.format.file_checks import ShardChecks
                from attnstore.format.shard_source import Address
                from attnstore.format.shards import Shards

                found, unit = self._open(segment, name), self._unit(segment, name)
                place = self.contents.root / unit / names.MAPS / name
                files = self.contents.below(unit, f"{names.MAPS}/{name}")
                sizes = {shard: file.bytes for shard, file in files.items()}
                source = Address(place, sizes) if isinstance(place, Remote) else place
                by_path = {f"{place}/{shard}": file for shard, file in files.items()}
                checks = ShardChecks(by_path, self._alike_shards(), local=isinstance(place, Path))
                reader = Shards.of(found, source, checks) or Guarded(found, source)
                self._arrays[segment, name] = found, reader, checks
            return self._arrays[segment, name]

    def _open(self, segment: int, name: str) -> "zarr.Array[Any]":
        import zarr

        from attnstore.format.declared import open_array

        path, unit = self._path(segment, name), self._unit(segment, name)
        metadata = self.contents.below(unit, f"{names.MAPS}/{name}").get("zarr.json")
        if metadata is None:
            raise Damaged(f"opening {path}", "no manifest lists it", "an array of the maps", _REMEDY)
        # The pipeline is chosen when an array is opened; set for good, it would change the caller's own arrays.
        is_zarrs = not self.contents.is_remote and importlib.util.find_spec("zarrs")
        with zarr.config.set(_ZARRS if is_zarrs else {}):
            try:
                # Only what the format allows, before a byte is decoded.
                found = open_array(self.contents.root / unit, name, metadata.sha256)
            except AttnStoreError:
                raise
            except Exception as error:
                raise Damaged(f"opening {path}", f"no readable array ({error})", "a Zarr v3 array", _REMEDY) from error
        kind = self.info.kinds[name.partition("_")[0]]
        others = {"key": "uint32", "rest": "float32", **dict.fromkeys(names.ADDED_MAPS.values(), "float32")}
        dtype = others.get(name.rpartition("_")[2], self.precision.dtype)
        if found.shape[:2] != (kind.layers, kind.heads) or found.ndim != 3 or found.dtype != np.dtype(dtype):
            raise Damaged(
                f"opening {path}",
                f"{found.dtype} {list(found.shape)}",
                f"{dtype} [{kind.layers}, {kind.heads}, cells]",
                _REMEDY,
            )
        for what, shape, most in (
            ("chunks", found.chunks, _MOST_CHUNK_CELLS),
            ("shards", found.shards, _MOST_SHARD_CELLS),
        ):
            if shape is not None and math.prod(shape) > most:
                raise Damaged(f"opening {path}", f"{what} of {shape} cells", f"{most} cells at most", _REMEDY)
        return found


def _copy(codes: NDArray[Any], out: NDArray[Any]) -> None:
    out[...] = codes


def _culprit(guarded: "Guarded", layer: slice, head: slice, cell: slice) -> str:
    """The shard, as a path below the array, that made a read of these cells fail."""
    shard = guarded.layout.outer[2]
    for number in range(layer.start, layer.stop):
        for index in range(cell.start // shard, -(-cell.stop // shard)):
            part = slice(max(cell.start, index * shard), min(cell.stop, (index + 1) * shard))
            try:
                guarded.read(slice(number, number + 1), head, part)
            except Exception:  # the one that is looked for
                return next(guarded.keys(slice(number, number + 1), head, part))
    return "c"
