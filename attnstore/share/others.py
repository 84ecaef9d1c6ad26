"""This file writes maps in the forms that other programs read, one example at a time."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.csv import CSVWriter

from attnstore.errors import BadInput
from attnstore.share.chosen_maps import ChosenMaps
from attnstore.share.whole import whole

FORMS = ("npz", "csv", "zarr", "bertviz")

DIGITS = 5
"""Decimals of weights for BertViz, which draws them as the depth of a line."""

_CSV = pa.schema(
    [
        *[("example", pa.int64()), ("kind", pa.string()), ("layer", pa.int64()), ("head", pa.int64())],
        *[("query", pa.int64()), ("key", pa.int64()), ("weight", pa.float32())],
    ]
)


def export_maps(chosen: ChosenMaps, target: str | Path, form: str) -> int:
    """Write maps to a new file (for zarr: a folder) in one of FORMS; how many examples. See docs/exports.md.

    The target appears when it is whole, and one example is in memory at a time. Raises BadInput for another form or a
    target that exists or cannot be written, NoSpace, and what `Store.attention` raises.
    """
    writers = {"npz": write_npz, "csv": write_csv, "zarr": _write_zarr, "bertviz": write_bertviz}
    doing = f"exporting maps to {target}"
    if form not in writers:
        raise BadInput(doing, f"the form {form!r}", f"one of {', '.join(FORMS)}")
    with whole(Path(target), doing) as staging:
        return writers[form](chosen, staging)


def write_npz(chosen: ChosenMaps, path: Path) -> int:
    """For each example N the arrays `N/weights` [layer, head, query, key], float32, `N/queries` and `N/keys`, labels.

    Beside them `examples`, `names`, `layers`, `heads` and, as text, `kind`, `level`, `content_hash` and others.
    """
    names = []
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=1) as archive:
        for found in chosen:
            names.append(found.name)
            _array(archive, f"{found.example}/weights", found.weights)
            _array(archive, f"{found.example}/queries", np.array(found.queries, dtype=np.str_))
            _array(archive, f"{found.example}/keys", np.array(found.keys, dtype=np.str_))
        _array(archive, "examples", np.array(chosen.examples, np.int64))
        _array(archive, "names", np.array(names, dtype=np.str_))
        _array(archive, "layers", np.array(chosen.layer_numbers, np.int64))
        _array(archive, "heads", np.array(chosen.head_numbers, np.int64))
        for name, text in chosen.about().items():
            _array(archive, name, np.array(text, dtype=np.str_))
    return len(names)


def _array(archive: zipfile.ZipFile, name: str, values: np.ndarray[Any, Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array(file, values, allow_pickle=False)


def write_csv(chosen: ChosenMaps, path: Path) -> int:
    """A row for each cell: example, kind, layer, head, query, key, weight; none for a weight that was not kept."""
    with CSVWriter(str(path), _CSV) as writer:
        for found in chosen:
            for index, layer in enumerate(found.layers):
                head, query, key = np.nonzero(~np.isnan(found.weights[index]))
                n = len(head)
                columns = [
                    *[np.full(n, found.example), np.full(n, found.kind), np.full(n, layer)],
                    *[np.array(found.heads)[head], query, key, found.weights[index][head, query, key]],
                ]
                arrays = [pa.array(column, kind) for column, kind in zip(columns, _CSV.types, strict=True)]
                writer.write_batch(pa.record_batch(arrays, schema=_CSV))
    return len(chosen.examples)


def write_bertviz(chosen: ChosenMaps, path: Path) -> int:
    """JSON with what `bertviz.head_view` takes: for each example `attention` [layer, head, query, key] and `tokens`.

    A cross map has `encoder_tokens` and `decoder_tokens` instead. Weights are rounded; one that was not kept is 0.
    """
    about = {**chosen.about(), "layers": chosen.layer_numbers, "heads": chosen.head_numbers}
    with open(path, "x", encoding="utf-8") as file:
        file.write(json.dumps(about, ensure_ascii=False)[:-1] + ', "examples": [')
        for index, found in enumerate(chosen):
            is_cross = found.kind == "cross"
            tokens = {"encoder_tokens": found.keys, "decoder_tokens": found.queries} if is_cross else {}
            view = {
                "example": found.example,
                "name": found.name,
                **(tokens or {"tokens": found.keys}),
                "attention": np.round(np.nan_to_num(found.weights).astype(np.float64), DIGITS).tolist(),
            }
            file.write((",\n" if index else "\n") + json.dumps(view, ensure_ascii=False))
        file.write("\n]}\n")
    return len(chosen.examples)


def _write_zarr(chosen: ChosenMaps, folder: Path) -> int:
    from attnstore.share.padded import write_padded

    return write_padded(chosen, folder)
