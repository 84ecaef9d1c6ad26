"""This file opens files of a store that lie in a folder: regular ones, and nothing that leads out of the store."""

import os
import stat
from pathlib import Path

from attnstore.errors import Damaged

REMEDY = "Fetch the store again, or run: attnstore verify"

_OPENED = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def opened(path: str | Path, what: str = "a file of the store") -> int:
    """The descriptor of a regular file, to be closed by the caller; Damaged where there is none of this name.

    A link would hand over bytes from outside the store, opening a pipe waits for a writer that never comes, and opening
    a device may do anything.
    """
    doing = f"reading {path}"
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Damaged(doing, "no regular file there", what, REMEDY)
        descriptor = os.open(path, _OPENED)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Damaged(doing, "it is missing", what, REMEDY) from error
    except (OSError, ValueError) as error:  # ValueError for a name with a NUL
        raise Damaged(doing, getattr(error, "strerror", None) or str(error), what, REMEDY) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # put there since
        os.close(descriptor)
        raise Damaged(doing, "no regular file there", what, REMEDY)
    return descriptor


def content(path: Path, most: int, what: str = "a file of the store") -> bytes:
    """All of a regular file; Damaged, before it is read, where it has more than `most` bytes."""
    with os.fdopen(opened(path, what), "rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise Damaged(f"reading {path}", f"{size} bytes", f"{most} at most")
        return file.read(most)
