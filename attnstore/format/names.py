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

PLAN = f"{STAGING}plan.json"
"""What parts of a planned store need beside store.json; a finished run removes it, and `gc` never does."""

KINDS = ("encoder", "decoder", "cross")
"""Attention kinds, in the order in which their cells are planned."""

ADDED_MAPS = {"gradient_maps": "gradient", "integrated_gradients": "integrated"}
"""What evidence keeps in arrays of its own beside the cells of a segment: `<kind>_gradient`, `<kind>_integrated`."""

PRECISIONS = ("standard", "exact", "compact")
"""How weights may be stored; `quantise` says what each means. Here, so that opening a store loads no NumPy."""

_IDENTIFIER = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_SEGMENT = re.compile(r"[0-9]{6,18}")
_SNAPSHOT = re.compile(r"([0-9]{8,18})\.json")


def segment_name(number: int) -> str:
    """Folder name of a planned segment: six digits or more."""
    return f"{number:06d}"


def snapshot_name(number: int) -> str:
    """File name of a snapshot: eight digits or more."""
    return f"{number:08d}.json"


def is_segment_name(name: str) -> bool:
    """Whether a folder of this name in `segments` is a segment, and not a copy that somebody left there."""
    return _SEGMENT.fullmatch(name) is not None and name == segment_name(int(name))


def is_identifier(name: str) -> bool:
    """Whether `checked_identifier` lets this name pass."""
    return _IDENTIFIER.fullmatch(name) is not None


def snapshot_number(name: str) -> int | None:
    """The number of the snapshot in a file of this name; None for another file."""
    found = _SNAPSHOT.fullmatch(name)
    number = int(found[1]) if found else None
    return number if number is not None and name == snapshot_name(number) else None


def parquet_name(table: str) -> str:
    """File name of a table inside a segment or addition."""
    return f"{table}.parquet"


def checked_identifier(doing: str, name: str) -> str:
    """`name`, if it may name a file inside a store: lower case letters, digits, dot, dash, underscore."""
    if not is_identifier(name):
        raise BadInput(doing, f"the name {name!r}", "lower case letters, digits, '.', '-' and '_', 100 at most")
    return name
