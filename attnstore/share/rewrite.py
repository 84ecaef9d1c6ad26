"""This file puts a store that is made from others in its place: written beside it first, then renamed in one step."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnstore.errors import AttnStoreError, BadInput, NoSpace
from attnstore.format import names
from attnstore.format.commit import commit
from attnstore.share.additions_rewrite import write_additions
from attnstore.share.card import write_card
from attnstore.share.making import Making, Wanted


def write_store(wanted: Wanted) -> Path:
    """Write the store at `wanted.target`, which appears whole or not at all; its folder.

    BadInput where something lies there, NoSpace where the disk is full, Damaged where a source is.
    """
    with _folder(wanted.target, wanted.doing) as root:
        making = Making(wanted, root)
        for number in range(len(wanted.segments)):
            making.write_segment(number)
        write_additions(making)
        making.write_json()
        commit(root, making.store_id())
        write_card(root)
    return wanted.target


@contextmanager
def _folder(target: Path, doing: str) -> Iterator[Path]:
    """A new folder beside `target`, which is renamed to it at the end, or removed."""
    check_free(target, doing)
    root = target.parent / f"{names.STAGING}{target.name}-{secrets.token_hex(4)}"
    try:
        root.mkdir()
        yield root
        check_free(target, doing)
        root.rename(target)
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException as error:
        shutil.rmtree(root, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, AttnStoreError):
            raise _named(error, target, doing) from error
        raise


def check_free(target: Path, doing: str) -> None:
    """Raise BadInput where something lies at `target`, or no folder is there to hold it."""
    if os.path.lexists(target):
        raise BadInput(doing, f"something lies at {target}", "a new folder: stores are never written over")
    if not target.absolute().parent.is_dir():
        raise BadInput(doing, f"no folder {target.absolute().parent}", "an existing folder to put the store in")


def _named(error: OSError, target: Path, doing: str) -> Exception:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpace(doing, os.strerror(error.errno or 0), remedy="Free some space; nothing was left there")
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
        return BadInput(doing, f"something lies at {target} now", "a new folder: stores are never written over")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG):
        return BadInput(
            doing, f"{error.filename or target}: {os.strerror(error.errno or 0)}", "a folder that can be written"
        )
    return error
