"""This file names every path inside a store, once."""

import re

from attnstore.errors import BadInput

STORE = "store.json"
README = "README.md"
SEGMENTS = "segments"
SEGMENT = "segment.json"
MAPS = "maps.zarr"
ADDITIONS = "additions"
ADDITION = "addition.json"
SNAPSHOTS = "snapshots"
TAGS = "tags"
STAGING = ".staging-"
"""Prefix of a folder or file that is still being written; readers pass it over, `gc` removes old ones."""

KINDS = ("encoder", "decoder", "cross")
"""Attention kinds, in the order in which their cells are planned."""

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def segment_name(number: int) -> str:
    """Folder name of a planned segment: six digits or more."""
    return f"{number:06d}"


def snapshot_name(number: int) -> str:
    """File name of a snapshot: eight digits or more."""
    return f"{number:08d}.json"


def parquet_name(table: str) -> str:
    """File name of a table inside a segment or addition."""
    return f"{table}.parquet"


def checked_identifier(doing: str, name: str) -> str:
    """`name`, if it may name a file inside a store: lower case letters, digits, dot, dash, underscore."""
    if not _IDENTIFIER.fullmatch(name):
        raise BadInput(doing, f"the name {name!r}", "lower case letters, digits, '.', '-' and '_', 100 at most")
    return name
