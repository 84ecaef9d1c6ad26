"""Attacks by the JSON of a store: store.json, snapshots, manifests and the paths that they list."""

import json
import os
from pathlib import Path
from typing import Any

from tests.forging import repin, rewrite_snapshot
from tests.hostile.attack import SEGMENT, add, edited, harmless, info, listed_as, refused, replaced, unit

SNAPSHOT = "snapshots/00000001.json"


def _kind(**keys: Any) -> Any:
    return info(lambda value: value["kinds"]["encoder"].update(keys))


def _plan(**keys: Any) -> Any:
    return info(lambda value: value["segments"][0].update(keys))


for name, make, says in (
    ("a number beyond floats", replaced("store.json", '"first": 0', '"first": 1e999'), "no valid JSON"),
    ("not a number", replaced("store.json", '"first": 0', '"first": NaN'), "no valid JSON"),
    ("ten thousand digits", replaced("store.json", '"first": 0', '"first": ' + "9" * 10_000), "no valid JSON"),
    ("a key twice", replaced("store.json", "{", '{"precision": "exact",'), "comes twice"),
    ("half of a letter", replaced("store.json", '"title": "', '"title": "\\ud800'), "no valid JSON"),
    ("a negative count", _plan(first=-1), "not a number from 0"),
    ("a count that is a float", _plan(first=0.0), "not a number from 0"),
    ("a count that is true", _plan(stop=True), "not a number from 0"),
    ("negative cells", _plan(cells={"encoder": -1}), "not a number from 0"),
    ("two thousand million examples", _plan(stop=2**31 - 1), "examples in segment"),
    ("more examples than numbers for them", _plan(stop=2**40), "not a number from"),
    ("a plan that runs backwards", info(lambda v: v["segments"].append(v["segments"][0])), "after one that ends"),
    ("a thousand million heads", _kind(heads=10**9), "not a number from 1"),
    ("many layers of many heads", _kind(layers=30_000, heads=30_000, kv_heads=1), "not a number from 0 to 1048576"),
    ("no layers", _kind(layers=0), "not a number from 1"),
    ("layers as text", _kind(layers="2"), "not a number from 1"),
    ("no heads of keys", _kind(kv_heads=0), "not a number from 1"),
    ("causal as text", _kind(causal="no"), "causal is"),
    ("a group for no layer", _kind(param_groups=[0]), "groups of 2 layers"),
    ("no weights kept of each row", info(lambda v: v["kept"].update(maps="topk", topk=0)), "not a number from 1"),
    ("a title that is a list", info(lambda v: v.update(title=["x"])), "not a text"),
    ("a model that is a text", info(lambda v: v.update(model="x")), "not an object"),
    ("a recipe of texts", info(lambda v: v["recipe"].update(corpus="x", keep="y")), "not an object"),
    ("tables that are a number", info(lambda v: v["facts"].update(tables=7)), "not a list"),
    ("a layer of lists", info(lambda v: v["kept"].update(layers=[[0]])), "not a number from 0"),
    ("a version of letters", info(lambda v: v.update(format="one")), "format version"),
    ("a list instead of a store", replaced("store.json", "{", "[{"), "JSON"),
    ("rows below nothing", unit(lambda v: v["rows"].update(tokens=-1)), "not a number from 0"),
    ("more rows than there are", unit(lambda v: v["rows"].update(tokens=10**9)), "in the manifest"),
    ("evidence that is a list", unit(lambda v: v["facts"].update(evidence=["gradient_maps"])), "not a text"),
    ("bytes below nothing", unit(lambda v: v["files"][0].update(bytes=-5)), "not a number from 0"),
    ("bytes beyond any disk", unit(lambda v: v["files"][0].update(bytes=2**80)), "no valid JSON"),
    ("bytes beyond what is read", unit(lambda v: v["files"][0].update(bytes=2**40)), "not a number from 0"),
    ("a hash in capitals", unit(lambda v: v["files"][0].update(sha256="A" * 64)), "hexadecimal"),
    ("a hash that is a path", unit(lambda v: v["files"][0].update(sha256="../../x")), "hexadecimal"),
    ("files that are no list", unit(lambda v: v.update(files=3)), "segment.json"),
    ("another id", unit(lambda v: v.update(id="000001")), "the id"),
):
    add(name, make, says)

PATHS = {
    "above": "../examples.parquet",
    "inner dots": "maps.zarr/../examples.parquet",
    "absolute": "/etc/passwd",
    "a drive": "C:/x",
    "backslash": "maps.zarr\\x",
    "nul": "a\0b",
    "escape": "a\x1b[2Jb",
    "decomposed": "e\u0301.parquet",
    "long": "x" * 256,
    "very long": "/".join(["x" * 200] * 6),
    "empty part": "maps.zarr//x",
    "dot": "./examples.parquet",
    "reserved": "CON.parquet",
    "reserved beneath": "maps.zarr/aux",
    "trailing dot": "examples.parquet.",
    "trailing space": "x /y",
    "wildcard": "examples*.parquet",
    "case": "TOKENS.parquet",
    "itself": "segment.json",
    "itself in capitals": "SEGMENT.JSON",
    "a folder": "maps.zarr",
}
for name, path in PATHS.items():
    add(f"path {name}", unit(lambda v, path=path: listed_as(v, "examples.parquet", path)), "the file name")
add("path twice", unit(lambda v: v["files"].append(v["files"][0])), "twice")


@refused("nested too deep")
def deep_json(store: Path) -> None:
    """store.json of 200,000 brackets."""
    (store / "store.json").write_text('{"format": "1.0", "x": ' + "[" * 200_000 + "]" * 200_000 + "}")


@refused("at most")
def a_store_json_of_a_terabyte(store: Path) -> None:
    """Sparse: it takes no room."""
    os.truncate(store / "store.json", 2**40)


@refused("at most")
def a_snapshot_of_ten_million_segments(store: Path) -> None:
    """Its text alone is beyond what is read."""
    with (store / SNAPSHOT).open("wb") as file:
        file.write(b'{"segments": [')
        file.write((b'{"id": "000000", "sha256": "%s"},' % (b"0" * 64)) * 800_000)


@refused("at most")
def a_manifest_of_many_megabytes(store: Path) -> None:
    """Of white space, after which its end comes."""
    path = store / SEGMENT / "segment.json"
    path.write_text(path.read_text() + " " * 17 * 2**20)
    repin(store)


@refused("no valid JSON")
def another_encoding(store: Path) -> None:
    """JSON in UTF-16, which Python's parser would take by itself."""
    path = store / "store.json"
    path.write_bytes(path.read_text().encode("utf-16"))
    repin(store)


@refused("not a text|no valid JSON|hexadecimal|in it|not an object", slow=True)
def half_a_million_segments(store: Path) -> None:
    """A list within the limit, of things that are no segments."""
    edited(store / SNAPSHOT, lambda v: v.update(segments=[{"id": 1, "sha256": 1}] * 500_000))


def _snapshot(change: Any) -> Any:
    def make(store: Path) -> None:
        edited(store / SNAPSHOT, change)
        repin(store)

    return make


add("a segment listed twice", _snapshot(lambda v: v["segments"].append(v["segments"][0])), "listed twice")
add("a snapshot of another number", _snapshot(lambda v: v.update(number=7)), "says that it is 7")
add("a snapshot with a number of text", _snapshot(lambda v: v.update(number="1")), "not a number")
add("tools that are a text", _snapshot(lambda v: v.update(tools="zarr")), "not an object")
add("a snapshot that is its own parent", _snapshot(lambda v: v.update(parent=1)), None)
add("a parent that is not there", _snapshot(lambda v: v.update(parent=10**15)), None)


@refused("in the plan")
def a_segment_outside_of_the_plan(store: Path) -> None:
    """A second copy of the segment under another number."""
    text = (store / SEGMENT / "segment.json").read_text().replace('"id": "000000"', '"id": "000007"')
    (store / SEGMENT).rename(store / "segments/000007")
    (store / "segments/000007/segment.json").write_text(text)
    edited(store / SNAPSHOT, lambda v: v["segments"][0].update(id="000007"))
    repin(store)


@refused("the name")
def a_segment_elsewhere(store: Path) -> None:
    """An id that leads out of the store."""
    value = json.loads((store / SNAPSHOT).read_text())
    value["segments"][0]["id"] = "../../elsewhere"
    rewrite_snapshot(store / SNAPSHOT, value)


@refused("its sha256 is")
def a_snapshot_that_was_edited(store: Path) -> None:
    """Without the hash that it then has."""
    edited(store / SNAPSHOT, lambda v: v.update(time="2001-01-01T00:00:00Z"))


@harmless
def an_address_in_a_manifest(store: Path) -> None:
    """Keys that readers do not know are passed over, and nothing is fetched."""
    edited(store / SEGMENT / "segment.json", lambda v: v.update(url="file:///etc/passwd"))
    info(lambda v: v.update(mirror="http://127.0.0.1:9/", template="{{ 7 * 7 }}"))(store)


@harmless
def a_readme_that_lies(store: Path) -> None:
    """Nothing reads it."""
    (store / "README.md").write_text("<script>alert(1)</script>\n" * 10)
