"""This file reads and writes the JSON manifests of a store: store.json, segment.json, addition.json, snapshots."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnstore.errors import Damaged, NotAStore, UnsupportedFormat
from attnstore.format import names
from attnstore.format.remote import Place, Remote
from attnstore.format.version import READS_MAJOR

FETCH = "Fetch the store again, or run: attnstore verify"

JSON_BYTES = 64 * 2**20
"""No manifest is larger; a bigger one is refused unread."""

_HEX = re.compile(r"[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Kind:
    """One attention kind: its heads, and on which side its queries and keys lie.

    `param_groups` gives each layer's group of shared parameters (ALBERT); empty where every layer has its own.
    """

    layers: int
    heads: int
    kv_heads: int
    queries: str
    keys: str
    causal: bool
    param_groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """Which maps a store holds: `maps` is all, topk or none; `layers`, `heads` None means every one."""

    maps: str
    layers: tuple[int, ...] | None
    heads: tuple[int, ...] | None
    topk: int | None


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """Examples `first` to `stop` (exclusive) of the corpus, and the cells of each kind that they own."""

    first: int
    stop: int
    cells: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What store.json says: written once, when the run is planned."""

    format: str
    store_id: str
    title: str
    recipe: Mapping[str, Any]
    model: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    parser: Mapping[str, Any]
    corpus: Mapping[str, Any]
    kinds: Mapping[str, Kind]
    precision: str
    kept: Kept
    facts: Mapping[str, Any]
    segments: tuple[PlannedSegment, ...]

    @property
    def n_examples(self) -> int:
        """Examples that the plan holds."""
        return self.segments[-1].stop if self.segments else 0


@dataclass(frozen=True, slots=True)
class File:
    """One file of a segment or addition; `path` is relative to it, with forward slashes."""

    path: str
    bytes: int
    sha256: str
    crc32c: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One segment or addition: its folder, its tables' row counts and its files."""

    id: str
    folder: str
    facts: Mapping[str, Any]
    rows: Mapping[str, int]
    files: tuple[File, ...]

    @property
    def is_segment(self) -> bool:
        """Whether this is a segment; an addition otherwise."""
        return self.folder.startswith(f"{names.SEGMENTS}/")


@dataclass(frozen=True, slots=True)
class Reference:
    """A segment or addition as a snapshot lists it: its id and the sha256 of its manifest."""

    id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An immutable list of segments and additions. `content_hash` pins everything that can be read."""

    number: int
    parent: int | None
    store_id: str
    segments: tuple[Reference, ...]
    additions: tuple[Reference, ...]
    content_hash: str
    time: str
    tools: Mapping[str, str]


def dumps(value: object) -> bytes:
    """JSON as a store holds it: sorted keys, two spaces, UTF-8, a final newline."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def load(path: Place, sha256: str | None = None) -> Any:
    """The JSON value in a regular file; Damaged where there is none, it has another sha256, or it does not parse."""
    doing = f"reading {path}"
    text = path.read_bytes(JSON_BYTES) if isinstance(path, Remote) else _local_bytes(path, doing)
    if sha256 is not None and (found := hashlib.sha256(text).hexdigest()) != sha256:
        raise Damaged(doing, f"sha256 {found[:16]}…", f"{sha256[:16]}…", FETCH)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(doing, f"no valid JSON ({error})", remedy="Fetch the store again") from error


def _local_bytes(path: Path, doing: str) -> bytes:
    if path.is_symlink() or not path.is_file():
        raise Damaged(doing, "no regular file there", remedy="Fetch the store again")
    if path.stat().st_size > JSON_BYTES:
        raise Damaged(doing, f"{path.stat().st_size} bytes", f"{JSON_BYTES} at most")
    return path.read_bytes()


def store_to_json(info: StoreInfo) -> bytes:
    """The text of store.json."""
    return dumps(asdict(info))


def read_store(root: Place) -> StoreInfo:
    """What `root/store.json` says. NotAStore without one, UnsupportedFormat for a version of another major."""
    path = root / names.STORE
    doing = f"opening {root}"
    if isinstance(path, Path) and not path.exists():
        raise NotAStore(doing, f"no {names.STORE} there", "the folder of a store", "Make one with: attnstore ingest")
    value = load(path)
    version = value.get("format") if isinstance(value, dict) else None
    if not isinstance(version, str) or not version.partition(".")[0].isdigit():
        raise Damaged(doing, f"format version {version!r}", "a version such as '1.0'")
    if int(version.partition(".")[0]) != READS_MAJOR:
        raise UnsupportedFormat(
            doing, f"format {version}", f"format {READS_MAJOR}.x", "Install a release of attnstore that reads it"
        )
    with _reading(path):
        kept = value["kept"]
        plain: dict[str, Any] = {key: value[key] for key in _TEXTS} | {key: dict(value[key]) for key in _MAPPINGS}
        return StoreInfo(
            **plain,
            precision=_one_of(names.PRECISIONS, value["precision"]),
            kinds={name: _kind(kind) for name, kind in value["kinds"].items() if name in names.KINDS},
            kept=Kept(
                _one_of(("all", "topk", "none"), kept["maps"]),
                _numbers(kept["layers"]),
                _numbers(kept["heads"]),
                int(kept["topk"]) if kept["maps"] == "topk" else None,
            ),
            segments=tuple(
                PlannedSegment(int(s["first"]), int(s["stop"]), dict(s["cells"])) for s in value["segments"]
            ),
        )


_TEXTS = ("format", "store_id", "title")
_MAPPINGS = ("recipe", "model", "tokenizer", "parser", "corpus", "facts")


def unit_to_json(unit: Unit) -> bytes:
    """The text of segment.json or addition.json: no time, host or version, so that equal content is equal text."""
    return dumps({"id": unit.id, "facts": unit.facts, "rows": unit.rows, "files": [asdict(f) for f in unit.files]})


def read_unit(root: Place, folder: str, sha256: str | None = None) -> Unit:
    """The manifest of the segment or addition in `root/folder`; its file names are checked to stay inside it.

    Hashes are checked to be such, since a cache names its files by them. Damaged for a manifest that is malformed, or
    has not the `sha256` that a snapshot lists.
    """
    path = root / folder / (names.SEGMENT if folder.startswith(f"{names.SEGMENTS}/") else names.ADDITION)
    value = load(path, sha256)
    with _reading(path):
        files = tuple(
            File(str(f["path"]), int(f["bytes"]), checked_sha256(f["sha256"]), _hex(f["crc32c"], 8))
            for f in value["files"]
        )
        unit = Unit(str(value["id"]), folder, dict(value["facts"]), dict(value["rows"]), files)
        if unit.id != folder.rpartition("/")[2]:
            raise ValueError(f"the id {unit.id!r} in {folder}")
        seen = set[str]()
        for file in files:
            parts = file.path.split("/")
            if file.path in seen or "\\" in file.path or "\0" in file.path or not {"", ".", ".."}.isdisjoint(parts):
                raise ValueError(f"the file name {file.path!r}")
            seen.add(file.path)
    return unit


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """The text of a snapshot."""
    return dumps(asdict(snapshot))


def read_snapshot(path: Place) -> Snapshot:
    """The snapshot in a file."""
    value = load(path)
    with _reading(path):
        lists = {
            key: tuple(Reference(str(r["id"]), checked_sha256(r["sha256"])) for r in value[key])
            for key in ("segments", "additions")
        }
        for reference in (*lists["segments"], *lists["additions"]):
            names.checked_identifier(f"reading {path}", reference.id)
        return Snapshot(**{**_only(Snapshot, value), **lists})


def checked_sha256(value: object) -> str:
    """The value, if it is the text of a sha256: 64 lower-case hexadecimal digits. ValueError otherwise."""
    return _hex(value, 64)


def _hex(value: object, digits: int) -> str:
    if not isinstance(value, str) or len(value) != digits or not _HEX.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r}, not {digits} lower-case hexadecimal digits")
    return value


def _kind(value: Mapping[str, Any]) -> Kind:
    for side in (value["queries"], value["keys"]):
        _one_of(("source", "target"), side)
    return Kind(**{**_only(Kind, value), "param_groups": _numbers(value["param_groups"]) or ()})


def _one_of(allowed: Collection[str], value: str) -> str:
    if value not in allowed:
        raise ValueError(f"{value!r}, not one of {', '.join(allowed)}")
    return value


def _only(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    # A newer minor version may add keys: pass them over. A missing one raises KeyError.
    return {name: value[name] for name in kind.__dataclass_fields__}  # type: ignore[attr-defined]


def _numbers(value: list[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(int(number) for number in value)


class _reading:  # noqa: N801 - reads as a statement
    """Turns what a malformed value raises into Damaged."""

    def __init__(self, path: Place) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KeyError):
            raise Damaged(f"reading {self.path}", f"no {error} in it", remedy="Fetch the store again") from error
        if isinstance(error, TypeError | ValueError | OverflowError | AttributeError) and not isinstance(
            error, Damaged
        ):
            raise Damaged(f"reading {self.path}", str(error), remedy="Fetch the store again") from error
