"""This file makes sure that a plan can be run into a folder, and writes the store.json of a new store."""

import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attnstore.errors import AttnStoreError, BadInput, NoSpace
from attnstore.format import names
from attnstore.format.commit import make_folder, published, snapshots, write_once
from attnstore.format.manifest import StoreInfo, read_store, store_to_json
from attnstore.job.plan import Plan
from attnstore.job.source import Prepared, Source

PLAN_FILE = names.PLAN
"""What parts of a planned store need beside store.json; readers pass it over, and a finished run removes it."""

SPACE_LEFT = 64 * 2**20
"""Bytes that must stay free on the disk."""


def begin(root: Path, plan: Plan, source: Source, check: Callable[[Sequence[Prepared]], object]) -> None:
    """Write store.json unless it is there. Before that, `check` loads the model and tries it on two examples.

    A model that cannot be used would otherwise leave a store behind that no other recipe may use. BadInput where the
    folder holds something else, or a store of another recipe, corpus or model; NoSpace where the disk cannot hold it.
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
    make_folder(root)
    if is_new:
        try:
            check(list(itertools.islice((x for x in source.examples() if isinstance(x, Prepared)), 2)))
        except BaseException:
            with suppress(OSError):  # only an empty folder can be removed so
                root.rmdir()
            raise
        if not write_once(root / names.STORE, store_to_json(plan.info)):
            _same_store(root, read_store(root), plan.info)


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


_UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


@contextmanager
def disk_errors_named(root: Path) -> Iterator[None]:
    """Errors of the file system that end a run, as BadInput or NoSpace."""
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
