"""This file describes a store for catalogues, in Croissant: JSON-LD that names its files, tables and columns.

Croissant has no word for chunked arrays: the maps are a set of files, and their description says shape and axes.
"""

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import pyarrow as pa

from attnstore.format import names
from attnstore.format.fact_tables import DECLARED
from attnstore.format.manifest import File
from attnstore.share.card import citation, licence_name, model, replace, title
from attnstore.share.escaping import one_line
from attnstore.share.listed import columns, data, patterns, tables
from attnstore.store.contents import Contents

CROISSANT = "croissant.json"

_SPDX = "https://spdx.org/licenses/"
_TYPES = {"string": "sc:Text", "bool": "sc:Boolean"}
_AXES = {
    "all": "float weights [layer, head, cell]: an example owns queries x keys cells from `cell_<kind>` in `examples`, "
    "row by row, without padding",
    "topk": "for each kind the largest weights of each row and their keys [layer, head, cell]: an example owns queries "
    "x N cells from `cell_<kind>` in `examples`",
    "none": "no maps",
}


def croissant(contents: Contents) -> dict[str, Any]:
    """The description of a store as a JSON value: equal for equal stores. Damaged where its files are not there.

    The columns of a table are those of its first file, which is fetched where the store lies behind an address.
    """
    info, snapshot, listed = contents.info, contents.snapshot, tables(contents)
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": re.sub(r"[^\w.-]+", "-", title(contents)).strip("-.") or "attention-maps",
        "alternateName": title(contents),
        "description": f"Attention maps of {model(contents)}, with the texts, in the format attnstore "
        f"{one_line(info.format)}. Content hash {snapshot.content_hash}.",
        "license": _licence(contents),
        "url": f"urn:sha256:{snapshot.content_hash}",
        "version": f"{snapshot.number}.0.0",
        "datePublished": one_line(snapshot.time)[:10],
        "citeAs": citation(contents),
        "keywords": ["attention", "interpretability", "transformers"],
        "isLiveDataset": False,
        "distribution": [
            *_whole_files(contents),
            *(one for table, files in listed.items() for one in _files(table, files, contents)),
            *_maps(contents),
        ],
        "recordSet": [_records(table, files, contents) for table, files in listed.items() if table in DECLARED],
    }


def croissant_text(contents: Contents) -> str:
    """The same as the text of croissant.json."""
    return json.dumps(croissant(contents), indent=2, ensure_ascii=False) + "\n"


def write_croissant(contents: Contents) -> None:
    """Write croissant.json into the folder of the store. BadInput where it lies behind an address."""
    replace(contents.folder / CROISSANT, croissant_text(contents))


def _licence(contents: Contents) -> str:
    known = licence_name(contents)
    stated = one_line(contents.info.corpus.get("licence") or "")
    return stated if known == "other" else f"{_SPDX}{_spdx(known)}" if stated else "not stated"


def _spdx(name: str) -> str:
    odd = {"apache-2.0": "Apache-2.0", "mit": "MIT", "odbl": "ODbL-1.0", "pddl": "PDDL-1.0", "unlicense": "Unlicense"}
    if name.startswith("bsd"):
        return name.upper().replace("CLAUSE", "Clause")
    return odd.get(name) or (f"{name.upper()}-only" if name.startswith("gpl") else name.upper())


def _whole_files(contents: Contents) -> Iterator[dict[str, Any]]:
    """store.json and the snapshot, whose hashes pin every other file."""
    for path in (names.STORE, f"{names.SNAPSHOTS}/{names.snapshot_name(contents.snapshot.number)}"):
        text = data(contents.root / path)
        yield _file(path, len(text), sha256(text).hexdigest(), "application/json")


def _file(path: str, size: int, digest: str, form: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{size} B",
        "encodingFormat": form,
        "sha256": digest,
    }


def _files(table: str, files: Mapping[str, File], contents: Contents) -> Iterator[dict[str, Any]]:
    """One file with its hash; of several files the set, whose hashes are in the manifests."""
    if len(files) == 1:
        path, file = next(iter(files.items()))
        yield _file(path, file.bytes, file.sha256, "application/x-parquet")
        return
    yield {
        "@type": "cr:FileSet",
        "@id": f"{table}-files",
        "name": f"{table}-files",
        "description": "sha256, crc32c and size of each file are in the manifest beside it",
        "encodingFormat": "application/x-parquet",
        "includes": patterns(table, files, contents),
    }


def _maps(contents: Contents) -> Iterator[dict[str, Any]]:
    info = contents.info
    if info.kept.maps == "none" or not contents.segments:
        return
    kinds = ", ".join(f"{name} [{kind.layers}, {kind.heads}, cells]" for name, kind in info.kinds.items())
    largest = f" (N = {info.kept.topk})" if info.kept.topk else ""
    yield {
        "@type": "cr:FileSet",
        "@id": "maps",
        "name": "maps",
        "description": f"A Zarr v3 group for each segment, precision {info.precision}: {kinds}. {_AXES[info.kept.maps]}"
        f"{largest}. sha256, crc32c and size of each file are in segment.json beside it.",
        "encodingFormat": "application/vnd.zarr",
        "includes": [f"{names.SEGMENTS}/*/{names.MAPS}/*"],
    }


def _records(table: str, files: Mapping[str, File], contents: Contents) -> dict[str, Any]:
    source = {"fileObject": {"@id": next(iter(files))}} if len(files) == 1 else {"fileSet": {"@id": f"{table}-files"}}
    there = columns(table, contents)
    return {
        "@type": "cr:RecordSet",
        "@id": table,
        "name": table,
        "description": f"The table {table} of every segment.",
        "field": [_field(table, column, source) for column in DECLARED[table] if column.name in there],
    }


def _field(table: str, column: pa.Field, source: Mapping[str, Any]) -> dict[str, Any]:
    inner = column.type.value_type if pa.types.is_list(column.type) else column.type
    described = {
        "@type": "cr:Field",
        "@id": f"{table}/{column.name}",
        "name": column.name,
        "description": (column.metadata or {}).get(b"meaning", b"").decode() or column.name,
        "dataType": _type(inner),
        "source": {**source, "extract": {"column": column.name}},
    }
    return described | ({"isArray": True, "arrayShape": "-1"} if inner is not column.type else {})


def _type(kind: pa.DataType) -> str:
    return _TYPES.get(str(kind)) or ("sc:Integer" if pa.types.is_integer(kind) else "sc:Float")


_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "description": {"@container": "@language"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "arrayShape": "cr:arrayShape",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
