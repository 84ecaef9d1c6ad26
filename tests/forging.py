"""This file makes the hashes of a store right again after a test changed it, as somebody who means it could."""

import hashlib
import json
from pathlib import Path

from attnstore.format.commit import content_hash, describe
from attnstore.format.manifest import Reference, own_sha256


def repin(store: Path, *, files: bool = False) -> Path:
    """Name in every snapshot the hashes that manifests and store.json have now; with `files` in the manifests too."""
    if files:
        for manifest in [*store.glob("segments/*/segment.json"), *store.glob("additions/*/addition.json")]:
            value = json.loads(manifest.read_text())
            for file in value["files"]:
                now = describe(manifest.parent / file["path"], file["path"])
                file.update(bytes=now.bytes, sha256=now.sha256, crc32c=now.crc32c)
                if "index_crc32c" in file:
                    tail = (manifest.parent / file["path"]).read_bytes()[-4:]
                    file["index_crc32c"] = f"{int.from_bytes(tail, 'little'):08x}"
            manifest.write_text(json.dumps(value))
    for path in store.glob("snapshots/*.json"):
        listed = json.loads(path.read_text())
        for folder, manifest_name in (("segments", "segment.json"), ("additions", "addition.json")):
            for one in listed[folder]:
                one["sha256"] = hashlib.sha256((store / folder / one["id"] / manifest_name).read_bytes()).hexdigest()
        references = [Reference(one["id"], one["sha256"]) for one in listed["segments"] + listed["additions"]]
        listed["content_hash"] = content_hash(references)
        listed["store_sha256"] = hashlib.sha256((store / "store.json").read_bytes()).hexdigest()
        rewrite_snapshot(path, listed)
    for path in store.glob("tags/*.json"):
        value = json.loads(path.read_text())
        named = json.loads((store / f"snapshots/{value['snapshot']:08d}.json").read_text())
        path.write_text(json.dumps({**value, "content_hash": named["content_hash"]}))
    return store


def rewrite_snapshot(path: Path, value: dict[str, object]) -> None:
    """Write a snapshot with the hash of itself that it then has."""
    zeros = "0" * 64
    text = json.dumps({**value, "sha256": zeros}).encode()
    path.write_bytes(text.replace(zeros.encode(), own_sha256(text, zeros).encode()))
