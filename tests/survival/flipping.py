"""This file makes stores of every kind, reads all that our API reads of one, and flips bits under it."""

import importlib.util
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import attnstore
from attnstore.errors import AttnStoreError, NotStored
from attnstore.format.shards import Shards
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from tests.conftest import arrays_recipe

KINDS: dict[str, dict[str, object]] = {
    "standard": {},
    "exact": {"keep__precision": "exact"},
    "compact": {"keep__precision": "compact"},
    "layers": {"keep__layers": [1]},
    "topk": {"keep__maps": "topk:2"},
    "topk compact": {"keep__maps": "topk:2", "keep__precision": "compact"},
    "none": {"keep__maps": "none"},
    "addition": {},
    "segments": {"keep__precision": "compact"},
}
"""Keys of the recipe of each kind of store."""

PIPELINES = ("shards", "zarrs", "zarr")
"""Ours, and those that read arrays of other writers: zarrs where it is installed, and zarr-python."""

TABLES = ("examples", "tokens", "words", "links", "skipped", "token_facts", "word_facts", "head_facts", "heads")
OWN_TABLES = ("segments", "additions")


def make(kind: str, corpus: Path, root: Path) -> Path:
    """A store of that kind at `root`."""
    with pytest.MonkeyPatch.context() as patch:
        if kind == "segments":
            patch.setattr(plan_module, "SEGMENT_TOKENS", 20)
        ingest(arrays_recipe(corpus, **KINDS[kind]), root).close()
    if kind == "addition":
        refresh(root, "offset_facts")
    return root


@contextmanager
def through(pipeline: str) -> Iterator[None]:
    """Arrays are read by this pipeline."""
    find = importlib.util.find_spec

    def hidden(name: str, package: str | None = None) -> Any:
        return None if name == "zarrs" else find(name, package)

    with pytest.MonkeyPatch.context() as patch:
        if pipeline != "shards":
            patch.setattr(Shards, "of", lambda *_: None)
        if pipeline == "zarr":
            patch.setattr(importlib.util, "find_spec", hidden)
        yield


def answers(root: Path) -> dict[str, Any]:
    """What a store says of itself, all of its stored tables, and its maps whole and in part."""
    found: dict[str, Any] = {}
    with attnstore.open(root) as store:
        found["info"] = (store.info, store.contents.snapshot)
        tables = [*TABLES, *(["offset_facts"] if store.contents.additions else [])]
        for table in tables:
            found[table] = store.sql(f"from {table} order by all").table
        for table in OWN_TABLES:
            found[table] = store.sql(f"from {table} order by all").table
        for name, read in _MAPS.items():
            try:
                found[name] = read(store)
            except NotStored as error:  # as the store says from the beginning
                found[name] = str(error.found)
    return found


_MAPS: dict[str, Callable[[attnstore.Store], Any]] = {
    "whole maps": lambda store: [store.attention(number, layer=1).to_numpy() for number in range(7)],
    "words": lambda store: store.attention(6, level="word").to_numpy(),
    "part of a map": lambda store: store.attention("s3", layer=1, head=2, tokens=slice(1, 3)).to_numpy(),
    "every map": lambda store: store.sql("from attention order by all").table,
    "one head": lambda store: store.sql("select sum(weight) from attention where layer = 1 and head = 0").table,
}


def equal(one: Any, other: Any) -> bool:
    """Whether two answers are the same to the bit, NaN included."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(item, other[name]) for name, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return bool(one == other or str(one) == str(other))  # tables with NaN differ from themselves


@dataclass
class Tally:
    """Counts of a run, and what went wrong in words."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))


class Bench:
    """Sound stores with their answers, and a copy of each that is damaged and mended again."""

    def __init__(self, corpus: Path, folder: Path) -> None:
        self.corpus, self.folder = corpus, folder
        self.roots: dict[str, Path] = {}
        self.right: dict[str, dict[str, Any]] = {}

    def root(self, kind: str) -> Path:
        """The copy of a store of that kind, made when it is first wanted."""
        if kind not in self.roots:
            root = make(kind, self.corpus, self.folder / f"{kind}.attn".replace(" ", "-"))
            self.right[kind] = answers(root)
            assert verify(root, deep=True) == []
            self.roots[kind] = Path(shutil.copytree(root, self.folder / "copies" / root.name))
        return self.roots[kind]

    def files(self, kind: str) -> list[Path]:
        """Its files, in order."""
        return sorted(path for path in self.root(kind).rglob("*") if path.is_file())

    def judge(self, kind: str, what: str, pipeline: str, tally: Tally, *, harmless: bool = False) -> None:
        """Verify and read the damaged copy; `harmless` damage need not be found, but the answers have to be right."""
        root = self.root(kind)
        try:
            flagged = bool(verify(root, deep=True))
        except AttnStoreError:
            flagged = True
        except Exception as error:
            flagged = False
            tally.wrong.append(f"{kind}: {what}: verify raised {error!r}")
        tally.counts["flagged" if flagged else "not flagged"] += 1
        if not flagged and not harmless:
            tally.wrong.append(f"{kind}: {what}: verify is content")
        try:
            with through(pipeline):
                found = answers(root)
        except AttnStoreError:
            tally.counts["typed error"] += 1
        except Exception as error:
            tally.counts["untyped error"] += 1
            tally.wrong.append(f"{kind}: {what}, {pipeline}: {error!r}")
        else:
            right = self.right[kind]
            differs = [name for name in right if not equal(right[name], found.get(name))]
            tally.counts["silent wrong read" if differs else "right answers"] += 1
            if differs:
                tally.wrong.append(f"{kind}: {what}, {pipeline}: silently wrong {differs}")


def flip(bench: Bench, rng: np.random.Generator, number: int, tally: Tally) -> None:
    """Flip one bit of one file of one store, look, and flip it back. Each file is as likely as any other."""
    kind = tuple(KINDS)[number % len(KINDS)]
    pipeline = PIPELINES[number // len(KINDS) % len(PIPELINES)]
    files = bench.files(kind)
    path = files[int(rng.integers(len(files)))]
    sound = path.read_bytes()
    place, bit = int(rng.integers(len(sound))), int(rng.integers(8))
    spoilt = bytearray(sound)
    spoilt[place] ^= 1 << bit
    name = path.relative_to(bench.root(kind)).as_posix()
    path.write_bytes(spoilt)
    try:
        bench.judge(kind, f"bit {bit} of byte {place} of {name}", pipeline, tally, harmless=name == "README.md")
        if "/c/" in name:
            _by_others(bench, kind, path, sound, tally)
    finally:
        path.write_bytes(sound)
    tally.counts["flips"] += 1
    tally.counts[f"of {path.suffix or 'shard'}"] += 1


def _by_others(bench: Bench, kind: str, path: Path, sound: bytes, tally: Tally) -> None:
    """Read the shard without us, whole and in part: other readers see damaged chunks as well."""
    array_path, spoilt = path.parents[3], path.read_bytes()
    layer = int(path.parents[1].name)
    for settings in ({}, {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        with zarr.config.set(settings):
            array: Any = zarr.open_array(array_path, mode="r")
            for cells in (slice(None), slice(3, 8)):
                for head in range(array.shape[1]):
                    path.write_bytes(sound)
                    wanted = array[layer : layer + 1, head : head + 1, cells]
                    path.write_bytes(spoilt)
                    try:
                        found = array[layer : layer + 1, head : head + 1, cells]
                    except Exception:
                        tally.counts["errors of other readers"] += 1
                        continue
                    same = wanted.tobytes() == found.tobytes()
                    tally.counts["right reads of others" if same else "silent wrong reads of others"] += 1
                    if not same:
                        tally.wrong.append(f"{kind}: {path}: {settings or 'zarr-python'} reads {cells} wrong")
