"""This file says which paths a manifest may list: such that name one file within its folder, on every system."""

import unicodedata
from collections.abc import Iterable

PART_BYTES = 255
"""What file systems take for one name."""

PATH_BYTES = 1024

_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³")}
_FORBIDDEN = frozenset('\\:*?"<>|\x7f') | {chr(code) for code in range(32)}


def check_paths(paths: Iterable[str], own: str) -> None:
    """ValueError unless each path is relative, clean, and another file than every other and than `own`, the manifest.

    Names that differ in case alone are one file on macOS and Windows.
    """
    seen, folders = {own.casefold()}, set[str]()
    for path in paths:
        _check(path)
        folded = path.casefold()
        if folded in seen:
            raise ValueError(f"the file name {path[:200]!r}, which is there twice or is the manifest itself")
        seen.add(folded)
        while folded := folded.rpartition("/")[0]:
            folders.add(folded)
    if both := seen & folders:
        raise ValueError(f"the file name {min(both)[:200]!r}, which is a folder of others")


def _check(path: str) -> None:
    if not isinstance(path, str) or len(path.encode()) > PATH_BYTES or unicodedata.normalize("NFC", path) != path:
        raise ValueError(f"the file name {str(path)[:200]!r}")
    for part in path.split("/"):
        is_reserved = part.casefold().partition(".")[0].rstrip(" ") in _RESERVED
        if (
            part in ("", ".", "..")
            or part[-1] in ". "
            or is_reserved
            or not _FORBIDDEN.isdisjoint(part)
            or len(part.encode()) > PART_BYTES
        ):
            raise ValueError(f"the file name {path[:200]!r}")
