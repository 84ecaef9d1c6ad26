"""This file writes a map as JSON or .npy, within the bytes that an answer may have."""

import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from attnstore.serve.problems import Problem
from attnstore.store.attention_map import AttentionMap

_HEADER = 1024
"""Bytes of .npy beside the weights, at most."""

_SHORTEST = len("0.0, ")
"""Bytes of a weight as JSON, at least."""


def as_npy(found: AttentionMap, most: int) -> bytes:
    """The weights as .npy; Problem `too-large` for more than `most` bytes."""
    weights = found.to_numpy()
    _check(weights.nbytes + _HEADER, weights, most)
    written = io.BytesIO()
    np.save(written, weights, allow_pickle=False)
    return written.getvalue()


def as_json(found: AttentionMap, layer: int, head: int, said: Mapping[str, Any], most: int) -> bytes:
    """The map [query, key] with its labels and what is `said` of it; Problem `too-large` for more than `most` bytes.

    It is written row by row: other threads of the process wait for no more than one.
    """
    weights = found.to_numpy()
    _check(weights.size * _SHORTEST, weights, most)
    about = {
        "example": found.example,
        "name": found.name,
        "kind": found.kind,
        "layer": layer,
        "head": head,
        "level": found.level,
        "of": found.of,
        "queries": found.queries,
        "keys": found.keys,
        **said,
    }
    start = json.dumps(about, ensure_ascii=False, allow_nan=False).encode().removesuffix(b"}")
    rows, size = [], len(start)
    for row in weights:
        values = row.tolist()
        if np.isnan(row).any():
            values = [None if value != value else value for value in values]
        rows.append(json.dumps(values, allow_nan=False).encode())
        size += len(rows[-1])
        _check(size, weights, most)
    body = b"".join((start, b', "weights": [', b", ".join(rows), b"]}"))
    _check(len(body), weights, most)
    return body


def _check(size: int, weights: np.ndarray[Any, Any], most: int) -> None:
    if size > most:
        shape = " x ".join(map(str, weights.shape))
        raise Problem("too-large", f"a map of {shape} weights", f"{most} bytes", "Ask for words, or for .npy")
