"""This file collects garbage: what nobody can need any more is removed from the folder of a store, and nothing else.

What may go, once it is older than a limit: leftovers of writers that were killed; snapshots that are neither the newest
nor tagged; additions that the newest snapshot drops and no snapshot lists. What a writer has published and no snapshot
lists yet is no garbage but finished work, which the next commit lists.

Nothing here needs a lock. A number of a snapshot is given once, so a commit that races with one that drops an addition
either comes first, and then lists it, or loses its number and drops it too: what was dropped is not listed again. A
unit, and a snapshot, is renamed before it is deleted, so that nobody sees half of it. Snapshots go first and the folder
is synced, so that what a crash leaves is more than is needed, never less.
"""

import itertools
import math
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import commit, latest, published, snapshots, sync
from attnstore.format.manifest import Snapshot, read_store, read_unit
from attnstore.share.tags import tags


@dataclass(frozen=True, slots=True)
class Removed:
    """A file or folder that was removed: its path in the store, its bytes, and why nobody needs it."""

    path: str
    bytes: int
    why: str


def gc(
    store: str | Path, older_than_hours: float = 24.0, *, dry_run: bool = False, superseded: bool = False
) -> list[Removed]:
    """Remove what nobody can need and is older than `older_than_hours`; what was removed, or would be by `dry_run`.

    Never touched: store.json, README.md, the newest snapshot, tagged ones, and every unit that a remaining snapshot
    lists or that waits for the next commit. `superseded` first commits a snapshot without the additions that later
    ones replace; they go once the snapshots that list them went.

    The age of a snapshot counts from when the one after it was made, since until then readers opened it: choose a
    limit longer than any reader keeps a store open and any writer stages a unit. Ages are those of files as this
    machine's clock sees them. A clock ahead of the file server's makes things look older than they are by that much; a
    file of the future counts as new. With 0 nobody else may write.

    BadInput for a limit that is none, NotAStore or Damaged where the folder is no sound store: then nothing is removed.
    """
    root = Path(store)
    if not (older_than_hours >= 0 and math.isfinite(older_than_hours)):
        raise BadInput(f"collecting {root}", f"older than {older_than_hours} hours", "0 or more")
    info = read_store(root)
    wanted = replaced(root) if superseded and snapshots(root) else ()
    if wanted and not dry_run:
        commit(root, info.store_id, dropping=wanted)
    made = _history(root, wanted if dry_run else ())
    limit = time.time() - older_than_hours * 3600
    gone = {number: _snapshot(root, number) for number in _outlived(root, made) if made[number].since <= limit}
    if not dry_run:
        gone = {number: one for number, one in gone.items() if _take_away(root, number)}
        sync(root / names.SNAPSHOTS) if gone else None
        made = _history(root)  # another one may have been tagged, or made, meanwhile
    removed = list(gone.values())
    dropped = _dropped(root, [one.snapshot for number, one in made.items() if number not in gone])
    for path, why in (*((path, _DROPPED) for path in dropped), *((path, _LEFTOVER) for path in _staged(root))):
        if _changed(root / path) <= limit:
            removed.append(Removed(path, _size(root / path), why))
            if not dry_run:
                _remove(root / path)
    return removed


def replaced(root: Path) -> tuple[str, ...]:
    """Additions of the newest snapshot all of whose tables later ones replace, by the rule that readers follow."""
    units = [read_unit(root, f"{names.ADDITIONS}/{one.id}", one.sha256) for one in latest(root).additions]
    found: list[str] = []
    taken = set[tuple[str, str]]()
    for unit in reversed(units):
        scope = str(unit.facts.get("scope"))
        own = f"{scope} {unit.facts.get(scope)}" if scope in ("segment", "part") else _WHOLE
        tables = {file.path for file in unit.files}
        are_tables = all("/" not in path and path.endswith(".parquet") for path in tables)  # and not maps
        if tables and are_tables and all({(table, own), (table, _WHOLE)} & taken for table in tables):
            found.append(unit.id)
        taken |= {(table, own) for table in tables}
    return tuple(sorted(found))


_WHOLE = ""
_OUTLIVED = "a snapshot that is neither the newest nor tagged"
_DROPPED = "an addition that was superseded"
_LEFTOVER = "left by a writer that did not end"


@dataclass(frozen=True, slots=True)
class _Made:
    """A snapshot, and the time since which it is not the newest, in seconds of the epoch."""

    snapshot: Snapshot
    since: float


def _history(root: Path, dropping: tuple[str, ...] = ()) -> dict[int, _Made]:
    """Every snapshot by number, ascending; with `dropping`, as if one more without these additions were made now."""
    numbers = snapshots(root)
    changed = {number: (root / _path(number)).lstat().st_mtime for number in numbers}
    found = {number: latest(root, number) for number in numbers}
    if dropping:
        newest = found[numbers[-1]]
        kept = tuple(one for one in newest.additions if one.id not in dropping)
        number = newest.number + 1
        found[number] = replace(newest, number=number, additions=kept, dropped=(*newest.dropped, *dropping))
        changed[number] = time.time()
        numbers = [*numbers, number]
    after = dict(itertools.pairwise(numbers))
    return {
        number: _Made(found[number], max(changed[number], changed[after.get(number, number)])) for number in numbers
    }


def _outlived(root: Path, made: dict[int, _Made]) -> list[int]:
    """Snapshots that are neither the newest nor tagged."""
    kept = {one.snapshot for one in tags(root)} | {max(made, default=0)}
    return [number for number in made if number not in kept]


def _take_away(root: Path, number: int) -> bool:
    """Remove a snapshot, unless somebody tagged it meanwhile; whether it went."""
    path = root / _path(number)
    staging = path.with_name(f"{names.STAGING}{path.name}-{secrets.token_hex(4)}")
    path.rename(staging)
    # Whoever tags looks for the snapshot after the tag was written: one of the two sees the other.
    is_needed = True
    try:
        is_needed = number in {one.snapshot for one in tags(root)}
    finally:
        staging.rename(path) if is_needed else staging.unlink()
    return not is_needed


def _dropped(root: Path, left: list[Snapshot]) -> list[str]:
    """Folders of additions that the newest of these snapshots, the last, drops and none lists."""
    listed = {reference.id for snapshot in left for reference in snapshot.additions}
    dropped = set(left[-1].dropped) - listed if left else set()
    return [f"{names.ADDITIONS}/{name}" for name in published(root, names.ADDITIONS) if name in dropped]


def _staged(root: Path) -> list[str]:
    """Unfinished work in the folders of a store; not the plan of an ingest whose parts are still built."""
    folders = ("", names.SEGMENTS, names.ADDITIONS, names.SNAPSHOTS, names.TAGS)
    return [
        path.relative_to(root).as_posix()
        for folder in folders
        if (root / folder).is_dir() and not (root / folder).is_symlink()
        for path in sorted((root / folder).iterdir())
        if path.name.startswith(names.STAGING) and (folder or path.name != names.PLAN)
    ]


def _remove(path: Path) -> None:
    """Remove a file or folder, which loses its name first."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    staging = path.with_name(f"{names.STAGING}dropped-{secrets.token_hex(4)}")
    path.rename(staging)
    sync(path.parent)
    shutil.rmtree(staging)


def _snapshot(root: Path, number: int) -> Removed:
    path = _path(number)
    return Removed(path, (root / path).lstat().st_size, _OUTLIVED)


def _path(number: int) -> str:
    return f"{names.SNAPSHOTS}/{names.snapshot_name(number)}"


def _below(path: Path) -> Iterator[os.stat_result]:
    """What the file system says of a file, or of a folder and everything in it; links are not followed."""
    yield path.lstat()
    if path.is_dir() and not path.is_symlink():
        for folder, folders, files in os.walk(path):
            yield from (os.lstat(os.path.join(folder, name)) for name in (*folders, *files))


def _changed(path: Path) -> float:
    """When a file, or anything in a folder, was last changed, in seconds of the epoch."""
    return max(found.st_mtime for found in _below(path))


def _size(path: Path) -> int:
    return sum(found.st_size for found in _below(path) if not stat.S_ISDIR(found.st_mode))
