"""This file lets what is written for others appear whole or not at all: under a name aside, then renamed."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnstore.errors import BadInput, NoSpace


@contextmanager
def whole(target: Path, doing: str) -> Iterator[Path]:
    """Where to write a file or a folder, which becomes `target` at the end and is removed where something fails.

    BadInput where `target` exists, lies in no folder, or cannot be written; NoSpace where the disk is full.
    """
    if not target.parent.is_dir():
        raise BadInput(doing, f"there is no folder {target.parent}", "a folder")
    _check_new(target, doing)
    # Two exports to one name must not write into one another.
    staging = target.with_name(f".{target.name}.{os.getpid()}.part")
    _remove(staging)
    try:
        yield staging
        for path in [*(path for path in staging.rglob("*") if path.is_file()), staging]:
            _sync(path)
        _check_new(target, doing)
        staging.rename(target)
        _sync(target.parent)
    except OSError as error:
        _remove(staging)
        kind = NoSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else BadInput
        raise kind(doing, error.strerror or str(error), f"a place that can be written: {target}") from error
    except BaseException:
        _remove(staging)
        raise


def _check_new(target: Path, doing: str) -> None:
    if os.path.lexists(target):
        raise BadInput(doing, f"{target} is there already", "a new name")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
