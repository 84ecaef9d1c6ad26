"""What an attack on a reader of stores is, and what makers of them share: a store, changed, with hashes that fit."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forging import repin

SEGMENT = "segments/000000"
ARRAY = f"{SEGMENT}/maps.zarr/encoder"

Make = Callable[[Path], None]


@dataclass(frozen=True)
class Attack:
    """A change to a store. `says` is what the refusal tells (a pattern); None where the answers stay right."""

    name: str
    make: Make
    says: str | None
    is_slow: bool = False


ATTACKS: dict[str, Attack] = {}


def refused(says: str, *, slow: bool = False) -> Callable[[Make], Make]:
    """Register a maker of stores that must be refused with these words."""
    return lambda make: _registered(make, says, slow)


def harmless(make: Make) -> Make:
    """Register a maker of stores whose odd parts are passed over."""
    return _registered(make, None, False)


def _registered(make: Make, says: str | None, slow: bool) -> Make:
    name = make.__name__.replace("_", " ")
    assert name not in ATTACKS, name
    ATTACKS[name] = Attack(name, make, says, slow)
    return make


def add(name: str, make: Make, says: str | None) -> None:
    """Register one of a family of attacks; every twelfth is tried in the quick suite."""
    assert name not in ATTACKS, name
    ATTACKS[name] = Attack(name, make, says, is_slow=len(ATTACKS) % 12 != 0)


def edited(path: Path, change: Callable[[Any], object]) -> None:
    """Change the JSON in a file in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def info(change: Callable[[Any], object]) -> Make:
    """Changes store.json."""

    def make(store: Path) -> None:
        edited(store / "store.json", change)
        repin(store)

    return make


def replaced(name: str, old: str, new: str) -> Make:
    """Replaces text in a file that no manifest lists: what JSON of Python would not write."""

    def make(store: Path) -> None:
        path = store / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new, 1))
        if name != "store.json" or new.startswith("["):
            return
        repin(store)

    return make


def unit(change: Callable[[Any], object]) -> Make:
    """Changes the manifest of the segment."""

    def make(store: Path) -> None:
        edited(store / SEGMENT / "segment.json", change)
        repin(store)

    return make


def metadata(change: Callable[[Any], object]) -> Make:
    """Changes the metadata of the array of weights."""

    def make(store: Path) -> None:
        edited(store / ARRAY / "zarr.json", change)
        repin(store, files=True)

    return make


def listed_as(value: Any, old: str, new: str) -> None:
    """Change the path of a listed file in a manifest."""
    next(file for file in value["files"] if file["path"] == old)["path"] = new


def unlist(store: Path, *gone: str, added: tuple[str, ...] = ()) -> None:
    """Make the manifest list other files; their hashes are made right by `repin`."""

    def change(value: Any) -> None:
        value["files"] = [file for file in value["files"] if not file["path"].startswith(tuple(gone) or ("\0",))]
        value["files"] += [{"path": name, "bytes": 0, "sha256": "0" * 64, "crc32c": "0" * 8} for name in added]

    edited(store / SEGMENT / "segment.json", change)
    repin(store, files=True)
