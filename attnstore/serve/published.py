"""This file says what a server shows: stores by name, each at one snapshot, with the files of that snapshot."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import tools
from attnstore.store.cited import shown_model
from attnstore.store.result import Result
from attnstore.store.store import Store
from attnstore.store.store import open as open_store

_PLAIN = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a snapshot: where it lies, its size, and the sha256 that is its ETag."""

    place: Path
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Published:
    """One store, pinned. `store` is read for what its manifests say; its tables and maps are for the workers."""

    name: str
    store: Store
    files: dict[str, File] = field(repr=False)

    @property
    def content_hash(self) -> str:
        """What pins every answer."""
        return self.store.snapshot.content_hash

    @property
    def key(self) -> str:
        """The folder of its files in URLs: the first digits of the content hash."""
        return self.content_hash[:16]

    def place(self) -> dict[str, Any]:
        """What a worker opens."""
        number, path = self.store.snapshot.number, str(self.store.contents.folder.absolute())
        return {"path": path, "snapshot": number, "content_hash": self.content_hash}

    def cite(self) -> dict[str, Any]:
        """What identifies the store in a publication, as `Result.cite` says it."""
        info, snapshot = self.store.info, self.store.snapshot
        return {
            "store_id": info.store_id,
            "title": info.title,
            "snapshot": snapshot.number,
            "content_hash": snapshot.content_hash,
            "model": shown_model(str(info.model.get("name", ""))),
            "revision": str(info.model.get("revision") or ""),
            "versions": {"attnstore": tools()["attnstore"]},
        }

    def additions(self) -> list[dict[str, Any]]:
        """Its evidence: what was made with the model, its tables with their rows, and how it was made."""
        told = ("evidence", "scope", "parameters")
        return [
            {"id": unit.id, "tables": dict(unit.rows), **{key: unit.facts[key] for key in told if key in unit.facts}}
            for unit in self.store.contents.additions
        ]

    def about(self) -> dict[str, Any]:
        """What `/v1/stores` says of it."""
        info, summary = self.store.info, self.store.summary()
        del summary["path"]
        evidence = sorted({str(unit.facts.get("evidence")) for unit in self.store.contents.additions} - {"None"})
        return {
            "name": self.name,
            **summary,
            "model": shown_model(str(info.model.get("name", ""))),
            "store_id": info.store_id,
            "snapshot": self.store.snapshot.number,
            "content_hash": self.content_hash,
            "licence": info.corpus.get("licence"),
            "kinds": {kind: {"layers": shape.layers, "heads": shape.heads} for kind, shape in info.kinds.items()},
            "evidence": evidence,
            "files": f"/files/{self.key}/",
            "page": f"/stores/{self.name}",
        }


def cited(result: Result) -> dict[str, Any]:
    """What identifies an answer; less than `Result.cite` says, as what was cut has no hash, and headers are short."""
    return result.origin()


def publish(stores: Sequence[tuple[str | None, Path]], **pins: Any) -> dict[str, Published]:
    """The stores in these folders by name: the one given, else the folder's without its ending.

    Raises what opening one does, and BadInput for two of the same name.
    """
    found: dict[str, Published] = {}
    for given, path in stores:
        name = _PLAIN.sub("-", (given or path.name.removesuffix(".attn")).lower()).strip("-.") or "store"
        if name in found:
            raise BadInput("serving", f"two stores named {name}", "a name for each", "Write NAME=FOLDER")
        store = open_store(path, **pins)
        found[name] = Published(name, store, dict(_files(store)))
    return found


def _files(store: Store) -> Iterator[tuple[str, File]]:
    """Every file that the snapshot lists, and the manifests that list them."""
    import hashlib

    root = store.contents.folder
    alone = ["store.json", f"{names.SNAPSHOTS}/{names.snapshot_name(store.snapshot.number)}"]
    alone += [f"{unit.folder}/{'segment' if unit.is_segment else 'addition'}.json" for unit in store.units]
    alone += ["README.md"] if (root / "README.md").is_file() else []
    for name in alone:
        data = (root / name).read_bytes()
        yield name, File(root / name, len(data), hashlib.sha256(data).hexdigest())
    for unit in store.units:
        for file in unit.files:
            yield f"{unit.folder}/{file.path}", File(store.contents.path(unit, file), file.bytes, file.sha256)
