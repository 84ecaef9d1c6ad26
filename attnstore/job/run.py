"""This file runs a plan: every segment that is not there yet, then the snapshot that makes them visible."""

import errno
import itertools
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tqdm import tqdm

from attnstore.errors import AttnStoreError, BadInput, NoSpace
from attnstore.format import names
from attnstore.format.commit import commit, in_work, publish, published, seal, snapshots, stage, write_once
from attnstore.format.manifest import StoreInfo, read_store, store_to_json
from attnstore.job.card import write_card
from attnstore.job.plan import Plan, make_plan
from attnstore.job.recipe import Recipe
from attnstore.job.segment import Segment, fill
from attnstore.job.segments import segments
from attnstore.job.source import Prepared, Source
from attnstore.job.sources import source_for
from attnstore.store.store import Store
from attnstore.store.store import open as open_store

SNAPSHOT_SECONDS = 60.0
"""A run makes a snapshot at most this often, and one at its end."""

SPACE_LEFT = 64 * 2**20
"""Bytes that must stay free on the disk."""


def estimate(recipe: Recipe | str | Path) -> Plan:
    """What an ingest would store and need. The corpus is tokenized; no model weights are loaded."""
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.read(recipe)
    return make_plan(recipe, source_for(recipe))


def ingest(recipe: Recipe | str | Path, store: str | Path, *, device: str = "cpu") -> Store:
    """Run a recipe into the store at `store`, and return it opened.

    The same call resumes an interrupted run; several may work on one store at once. A call whose recipe asks for more
    evidence adds it. BadInput where the folder holds a store of another recipe, corpus or model; NoSpace where the disk
    cannot hold it.
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.read(recipe)
    source, root = source_for(recipe, device), Path(store)
    plan = make_plan(recipe, source)
    with _disk_errors_named(root):
        is_checked = _begin(root, plan, source)
        _run(root, plan, source, is_checked)
        if recipe.keep.evidence:
            from attnstore.job.evidence.collect import collect  # which loads the model's head

            collect(root, plan, recipe, source)
        write_card(root)
    return open_store(root)


def check_space(root: Path, plan: Plan, doing: str) -> None:
    """Raises NoSpace unless the disk that `root` lies on, or would, holds what is left to write of a plan."""
    place = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.exists())
    share = 1 - len(published(root, names.SEGMENTS)) / len(plan.info.segments)
    need, free = int((plan.map_bytes + plan.fact_bytes) * share), shutil.disk_usage(place).free
    if need + SPACE_LEFT > free:
        raise NoSpace(
            doing,
            f"about {need / 2**20:,.0f} MiB to write and {free / 2**20:,.0f} MiB free",
            f"{SPACE_LEFT / 2**20:,.0f} MiB more than that",
            "Free some, or keep less: keep.precision, keep.layers or keep.maps",
        )


def _begin(root: Path, plan: Plan, source: Source) -> bool:
    """Write store.json unless it is there; whether the source was started, which comes first.

    A model that cannot be used would otherwise leave a store behind that no other recipe may use.
    """
    if root.exists() and not root.is_dir():
        raise BadInput(f"ingesting into {root}", "a file of that name", "a folder, or nothing")
    foreign = [path.name for path in root.iterdir() if not path.name.startswith(names.STAGING)] if root.is_dir() else []
    if foreign and not (root / names.STORE).exists():
        raise BadInput(f"ingesting into {root}", f"a folder that holds {foreign[0]}", "an empty folder, or a store")
    is_new = not (root / names.STORE).exists()
    if not is_new:
        _same_store(root, read_store(root), plan.info)
    check_space(root, plan, f"ingesting into {root}")
    if is_new:
        root.mkdir(parents=True, exist_ok=True)
        try:
            source.start(list(itertools.islice((x for x in source.examples() if isinstance(x, Prepared)), 2)))
        except BaseException:
            with suppress(OSError):  # only an empty folder can be removed so
                root.rmdir()
            raise
        if not write_once(root / names.STORE, store_to_json(plan.info)):
            _same_store(root, read_store(root), plan.info)
    return is_new


def _same_store(root: Path, there: StoreInfo, wanted: StoreInfo) -> None:
    if there.store_id == wanted.store_id:
        return
    different = [
        f"{section}.{key}: {mine!r} in the store, {yours!r} now"
        for section in ("recipe", "model", "tokenizer", "parser", "corpus")
        for key, mine, yours in _differences(getattr(there, section), getattr(wanted, section))
    ]
    raise BadInput(
        f"ingesting into {root}",
        "the store was made by another recipe, corpus or model: " + ("; ".join(different[:3]) or "another plan"),
        remedy="Name another folder, or delete this one",
    )


def _differences(there: object, wanted: object, key: str = "") -> Iterator[tuple[str, object, object]]:
    if isinstance(there, dict) and isinstance(wanted, dict):
        for name in sorted({*there, *wanted}):
            yield from _differences(there.get(name), wanted.get(name), f"{key}.{name}" if key else name)
    elif _plain(there) != _plain(wanted):
        yield key, there, wanted


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _run(root: Path, plan: Plan, source: Source, is_checked: bool) -> None:
    info = plan.info
    wanted = range(len(info.segments))
    left = [n for n in wanted if names.segment_name(n) not in published(root, names.SEGMENTS)]
    if not left:
        commit(root, info.store_id)
        return
    committed = time.monotonic()
    total = sum(info.segments[n].stop - info.segments[n].first for n in left)
    # disable=None: shown on a terminal, quiet otherwise.
    with tqdm(total=total, desc="ingest", unit=" examples", disable=None) as bar:
        # Segments that another writer has in work come last: it may finish them, or be dead.
        for leave_to_others in (True, False):
            left = [n for n in left if names.segment_name(n) not in published(root, names.SEGMENTS)]
            for segment in segments(plan, source, left):
                folder = f"{names.SEGMENTS}/{names.segment_name(segment.number)}"
                if (root / folder).exists():
                    continue
                if leave_to_others and names.segment_name(segment.number) in in_work(root, names.SEGMENTS):
                    continue
                if not is_checked:
                    source.start(segment.prepared[:2])
                    is_checked = True
                _build(root, folder, segment, info, source)
                bar.update(len(segment.prepared))
                if time.monotonic() - committed > SNAPSHOT_SECONDS:
                    commit(root, info.store_id)
                    committed = time.monotonic()
    commit(root, info.store_id)


def _build(root: Path, folder: str, segment: Segment, info: StoreInfo, source: Source) -> None:
    staging = stage(root, folder)
    try:
        rows, shards = fill(staging, segment, info, source)
        planned = info.segments[segment.number]
        seal(staging, folder, {"first": planned.first, "stop": planned.stop}, rows, shards)
        publish(staging, root, folder)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


@contextmanager
def _disk_errors_named(root: Path) -> Iterator[None]:
    try:
        yield
    except AttnStoreError:
        raise
    except OSError as error:
        if error.errno in _UNWRITABLE:
            place = error.filename or root
            raise BadInput(
                f"ingesting into {root}", f"{place}: {os.strerror(error.errno)}", "a folder that can be written"
            ) from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NoSpace(
            f"ingesting into {root}",
            os.strerror(error.errno),
            remedy=f"Free some space and run the same command again: {len(snapshots(root))} snapshots and "
            f"{len(published(root, names.SEGMENTS))} finished segments are kept",
        ) from error
