"""This file reads and writes the JSON manifests of a store: store.json, segment.json, addition.json, snapshots."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from attnstore.errors import Damaged, NotAStore, UnsupportedFormat
from attnstore.format import limits, names
from attnstore.format.json_text import (
    checked_sha256,
    count,
    hexadecimal,
    mapping,
    one_of,
    parsed,
    reading,
    text,
    texts,
)
from attnstore.format.listed_paths import check_paths
from attnstore.format.regular import content
from attnstore.format.remote import Place, Remote
from attnstore.format.version import READS_MAJOR

FETCH = "Fetch the store again, or run: attnstore verify"

_NO_HASH = "0" * 64


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
    """What store.json says: written once, when the run is planned. `sha256` is that of the file, once it was read."""

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
    sha256: str = field(default="", compare=False)

    @property
    def n_examples(self) -> int:
        """Examples that the plan holds."""
        return self.segments[-1].stop if self.segments else 0


@dataclass(frozen=True, slots=True)
class File:
    """One file of a segment or addition; `path` is relative to it, with forward slashes.

    `index_crc32c`, of a shard, is the checksum of its index, which its last four bytes hold: it tells one shard from
    another before all of it was read. None for other files, and in stores that were written without.
    """

    path: str
    bytes: int
    sha256: str
    crc32c: str
    index_crc32c: str | None = None


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
    """An immutable list of segments and additions. `content_hash` pins every table and map that can be read.

    `store_sha256` is the hash of store.json; None in snapshots that were written without. `dropped` are ids of
    additions that lie in the folder and are left out on purpose, here and in the snapshots that follow.
    """

    number: int
    parent: int | None
    store_id: str
    segments: tuple[Reference, ...]
    additions: tuple[Reference, ...]
    content_hash: str
    time: str
    tools: Mapping[str, str]
    store_sha256: str | None = None
    dropped: tuple[str, ...] = ()


def dumps(value: object) -> bytes:
    """JSON as a store holds it: sorted keys, two spaces, UTF-8, a final newline."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def load(path: Place, sha256: str | None = None, most: int = limits.JSON_BYTES) -> Any:
    """The JSON value in a regular file.

    Damaged where there is none, it has more than `most` bytes or another sha256, or it does not parse.
    """
    data = _data(path, most)
    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise Damaged(f"reading {path}", f"sha256 {found[:16]}…", f"{sha256[:16]}…", FETCH)
    return parsed(data, f"reading {path}")


def _data(path: Place, most: int) -> bytes:
    return path.read_bytes(most) if isinstance(path, Remote) else content(path, most)


def store_to_json(info: StoreInfo) -> bytes:
    """The text of store.json."""
    return dumps({key: value for key, value in asdict(info).items() if key != "sha256"})


def read_store(root: Place) -> StoreInfo:
    """What `root/store.json` says. NotAStore without one, UnsupportedFormat for a version of another major."""
    path = root / names.STORE
    doing = f"opening {root}"
    if isinstance(path, Path) and not path.exists():
        raise NotAStore(doing, f"no {names.STORE} there", "the folder of a store", "Make one with: attnstore ingest")
    data = _data(path, limits.JSON_BYTES)
    value = parsed(data, f"reading {path}")
    version = value.get("format") if isinstance(value, dict) else None
    if not isinstance(version, str) or not version.partition(".")[0].isdigit():
        raise Damaged(doing, f"format version {version!r}", "a version such as '1.0'")
    if int(version.partition(".")[0]) != READS_MAJOR:
        raise UnsupportedFormat(
            doing, f"format {version}", f"format {READS_MAJOR}.x", "Install a release of attnstore that reads it"
        )
    with reading(path):
        kept = value["kept"]
        plain: dict[str, Any] = {key: text(value[key]) for key in _TEXTS}
        plain |= {key: mapping(value[key]) for key in _MAPPINGS}
        for key in ("corpus", "model", "keep"):
            mapping(plain["recipe"].get(key, {}))
        texts(plain["facts"].get("tables", []))
        for key in ("parameters", "distances"):
            mapping(plain["facts"].get(key, {}))
        return StoreInfo(
            **plain,
            sha256=hashlib.sha256(data).hexdigest(),
            precision=one_of(names.PRECISIONS, value["precision"]),
            kinds={name: _kind(kind) for name, kind in mapping(value["kinds"]).items() if name in names.KINDS},
            kept=Kept(
                one_of(("all", "topk", "none"), kept["maps"]),
                _numbers(kept["layers"]),
                _numbers(kept["heads"]),
                count(kept["topk"], limits.MOST_EXAMPLES, 1) if kept["maps"] == "topk" else None,
            ),
            segments=tuple(_planned(value["segments"])),
        )


def _planned(segments: Iterable[Mapping[str, Any]]) -> Iterator[PlannedSegment]:
    stop = 0
    for segment in segments:
        first, before = count(segment["first"], limits.MOST_EXAMPLES), stop
        stop = count(segment["stop"], limits.MOST_EXAMPLES, first)
        if first < before:
            raise ValueError(f"a segment from example {first} on after one that ends at {before}")
        yield PlannedSegment(first, stop, {name: count(cells) for name, cells in mapping(segment["cells"]).items()})


_TEXTS = ("format", "store_id", "title")
_MAPPINGS = ("recipe", "model", "tokenizer", "parser", "corpus", "facts")


def unit_to_json(unit: Unit) -> bytes:
    """The text of segment.json or addition.json: no time, host or version, so that equal content is equal text."""
    return dumps({"id": unit.id, "facts": unit.facts, "rows": unit.rows, "files": [_given(f) for f in unit.files]})


def read_unit(root: Place, folder: str, sha256: str | None = None) -> Unit:
    """The manifest of the segment or addition in `root/folder`; its file names are checked to stay inside it.

    Hashes are checked to be such, since a cache names its files by them. Damaged for a manifest that is malformed, or
    has not the `sha256` that a snapshot lists.
    """
    path = root / folder / (names.SEGMENT if folder.startswith(f"{names.SEGMENTS}/") else names.ADDITION)
    value = load(path, sha256, limits.UNIT_BYTES)
    with reading(path):
        files = tuple(
            File(
                text(f["path"]),
                count(f["bytes"], limits.FILE_BYTES),
                checked_sha256(f["sha256"]),
                hexadecimal(f["crc32c"], 8),
                hexadecimal(f["index_crc32c"], 8) if f.get("index_crc32c") is not None else None,
            )
            for f in value["files"]
        )
        rows = {table: count(number) for table, number in mapping(value["rows"]).items()}
        unit = Unit(text(value["id"]), folder, _unit_facts(value["facts"]), rows, files)
        if unit.id != folder.rpartition("/")[2]:
            raise ValueError(f"the id {unit.id!r} in {folder}")
        check_paths((file.path for file in files), str(path).rpartition("/")[2])
    return unit


def _unit_facts(value: object) -> dict[str, Any]:
    facts = mapping(value)
    for key in ("scope", "segment", "part", "evidence"):
        text(facts.get(key, ""))
    texts(facts.get("replaces", []))
    mapping(facts.get("parameters", {}))
    return facts


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """The text of a snapshot, with its own hash in it."""
    if snapshot.store_sha256 is None:
        return dumps(_given(snapshot))
    text = dumps({**_given(snapshot), "sha256": _NO_HASH})
    return text.replace(_NO_HASH.encode(), own_sha256(text, _NO_HASH).encode())


def own_sha256(text: bytes, sha256: str) -> str:
    """The sha256 that a snapshot has to name: of its text, with zeros where the text names `sha256`."""
    return hashlib.sha256(text.replace(sha256.encode(), _NO_HASH.encode())).hexdigest()


def read_snapshot(path: Place) -> Snapshot:
    """The snapshot in a file. Damaged where it is malformed, or names another hash of itself than it has."""
    data = _data(path, limits.JSON_BYTES)
    value = parsed(data, f"reading {path}")
    with reading(path):
        count(value["number"])
        mapping(value["tools"])
        for key in ("store_id", "content_hash", "time"):
            text(value[key])
        lists = {
            key: tuple(Reference(text(r["id"]), checked_sha256(r["sha256"])) for r in value[key])
            for key in ("segments", "additions")
        }
        dropped = tuple(texts(value.get("dropped", [])))
        for name in (*(reference.id for key in lists for reference in lists[key]), *dropped):
            names.checked_identifier(f"reading {path}", name)
        _check_own_hash(value, data)
        return Snapshot(**{**_only(Snapshot, {**value, "dropped": ()}), **lists, "dropped": dropped})


def _check_own_hash(value: Mapping[str, Any], data: bytes) -> None:
    own, store = value.get("sha256"), value.get("store_sha256")
    # Both or neither: damage to the name of one key must not take the check away.
    if (own is None) != (store is None):
        raise ValueError("one of the keys sha256 and store_sha256 without the other")
    if own is None:
        return
    checked_sha256(store)
    if (found := own_sha256(data, checked_sha256(own))) != own:
        raise ValueError(f"its sha256 is {found[:16]}…, not {own[:16]}…, which it names")


def _kind(value: Mapping[str, Any]) -> Kind:
    for side in (value["queries"], value["keys"]):
        one_of(("source", "target"), side)
    layers, heads = count(value["layers"], limits.MOST_LAYERS, 1), count(value["heads"], limits.MOST_HEADS, 1)
    count(value["kv_heads"], heads, 1)
    count(layers * heads, limits.MOST_MAPS)
    if not isinstance(value["causal"], bool):
        raise ValueError(f"causal is {value['causal']!r}")
    groups = _numbers(value["param_groups"]) or ()
    if groups and len(groups) != layers:
        raise ValueError(f"{len(groups)} groups of {layers} layers")
    return Kind(**{**_only(Kind, value), "param_groups": groups})


def _only(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    # A newer minor version may add keys: pass them over. A missing one raises KeyError.
    return {
        one.name: value[one.name] if one.default is MISSING else value.get(one.name, one.default)
        for one in fields(kind)
    }


def _given(value: File | Snapshot) -> dict[str, Any]:
    """Its keys; one that may be left out only where it has a value."""
    left_out = {"store_sha256": None, "index_crc32c": None, "dropped": ()}
    return {name: item for name, item in asdict(value).items() if name not in left_out or item != left_out[name]}


def _numbers(value: list[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(count(number, limits.MOST_MAPS) for number in value)
