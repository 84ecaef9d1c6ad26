"""This file writes maps as one array with NaN where an example is shorter, for xarray: a Zarr of version 2."""

from pathlib import Path
from typing import Any

import numpy as np
import zarr

from attnstore.share.chosen_maps import ChosenMaps

CHUNK_CELLS = 2**23
"""A chunk holds one example or, where that is longer than 32 MiB, one layer of it."""


def write_padded(chosen: ChosenMaps, folder: Path) -> int:
    """Write `weight` [example, layer, head, query, key], float32, with coordinates; how many examples.

    Beside the numbers of examples, layers and heads stand `name`, `n_queries`, `n_keys` [example] and the labels
    `query_label` [example, query], `key_label` [example, key]. Version 2 of Zarr, since version 3 has no text yet that
    every reader knows.
    """
    sizes = np.array([chosen.size(example) for example in chosen.examples], np.int64)
    (n_queries, n_keys), layers, heads = sizes.max(axis=0).tolist(), chosen.layer_numbers, chosen.head_numbers
    group = zarr.open_group(folder, mode="w-", zarr_format=2)
    group.attrs.update(chosen.about())
    n, per_layer = len(chosen.examples), len(heads) * n_queries * n_keys
    deep = len(layers) if per_layer * len(layers) <= CHUNK_CELLS else 1
    cells = group.create_array(
        "weight",
        shape=(n, len(layers), len(heads), n_queries, n_keys),
        chunks=(1, deep, len(heads), n_queries, n_keys),
        dtype=np.float32,
        fill_value=np.nan,
        attributes={"_ARRAY_DIMENSIONS": ["example", "layer", "head", "query", "key"]},
    )
    names = []
    labels = {"query": np.full((n, n_queries), "", object), "key": np.full((n, n_keys), "", object)}
    for index, found in enumerate(chosen):
        queries, keys = sizes[index].tolist()
        for first in range(0, len(layers), deep):
            some = slice(first, first + deep)
            whole = np.full((len(layers[some]), len(heads), n_queries, n_keys), np.nan, np.float32)
            whole[:, :, :queries, :keys] = found.weights[some]
            cells[index, some] = whole
        labels["query"][index, :queries], labels["key"][index, :keys] = found.queries, found.keys
        names.append(found.name)
    _column(group, "example", np.array(chosen.examples, np.int64), "example")
    _column(group, "name", np.array(names, object), "example")
    _column(group, "n_queries", sizes[:, 0], "example")
    _column(group, "n_keys", sizes[:, 1], "example")
    _column(group, "layer", np.array(layers, np.int64), "layer")
    _column(group, "head", np.array(heads, np.int64), "head")
    for side, texts in labels.items():
        _column(group, side, np.arange(texts.shape[1]), side)
        _column(group, f"{side}_label", texts, "example", side)
    # xarray takes these as coordinates and not as data.
    beside = "name n_queries n_keys query_label key_label"
    cells.attrs["coordinates"] = beside
    zarr.consolidate_metadata(group.store, zarr_format=2)
    return n


def _column(group: zarr.Group, name: str, values: Any, *dims: str) -> None:
    is_text = values.dtype == object
    array = group.create_array(
        name,
        shape=values.shape,
        chunks=tuple(max(size, 1) for size in values.shape),
        dtype=str if is_text else values.dtype,
        fill_value=None,  # xarray would read as missing whatever equals it, such as layer 0
        attributes={"_ARRAY_DIMENSIONS": list(dims)},
    )
    array[:] = values.astype(str) if is_text else values
