"""Random damage that hashes do not tell: bytes of metadata, footers and shards, and odd values in JSON."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.forging import repin
from tests.hostile.attack import ARRAY, SEGMENT

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, -(2**63), 1e308, 0.5, "", "\x1b[2J", "../..", "x" * 3000),
    *([], {}, [None], [[]], {"a": {}}, [0] * 500),
)
FILES = (
    "store.json",
    "snapshots/00000001.json",
    f"{SEGMENT}/segment.json",
    f"{ARRAY}/zarr.json",
    f"{ARRAY}/c/0/0/0",
    f"{ARRAY}/c/1/0/0",
    f"{SEGMENT}/examples.parquet",
    f"{SEGMENT}/tokens.parquet",
    f"{SEGMENT}/words.parquet",
)
FOOTER = 2500
"""Bytes at the end of a Parquet file that are most often changed."""


def mutate(store: Path, seed: int) -> str:
    """Damage one file, and make the hashes above it right where that can be done; which file."""
    rng = np.random.default_rng(seed)
    name = FILES[int(rng.integers(len(FILES)))]
    path = store / name
    if name.endswith(".json") and rng.random() < 0.7:
        value = json.loads(path.read_text())
        for _ in range(int(rng.integers(1, 3))):
            _odd(value, rng)
        path.write_text(json.dumps(value))
    else:
        path.write_bytes(_bytes(bytearray(path.read_bytes()), rng))
    # What was damaged may be what the hashes are written into.
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        repin(store, files=name not in (f"{SEGMENT}/segment.json", "store.json", FILES[1]))
    return name


def _odd(value: Any, rng: np.random.Generator) -> None:
    """Put an odd value somewhere inside."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        inner = value[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            value = inner
            continue
        if isinstance(value, dict) and rng.random() < 0.15:
            del value[key]
        else:
            value[key] = ODD[int(rng.integers(len(ODD)))]
        return


def _bytes(data: bytearray, rng: np.random.Generator) -> bytes:
    lowest = max(len(data) - FOOTER, 0) if rng.random() < 0.7 else 0
    for _ in range(int(rng.integers(1, 6))):
        at, what = int(rng.integers(lowest, max(len(data), lowest + 1))), rng.integers(5)
        if what == 0:
            data[at : at + 1] = bytes([data[at] ^ (1 << int(rng.integers(8)))]) if at < len(data) else b"x"
        elif what == 1:
            data[at : at + 4] = rng.bytes(4)
        elif what == 2:
            data[at : at + 1] = b"\xff"
        elif what == 3:
            del data[at : at + int(rng.integers(1, 9))]
        else:
            data[at:at] = data[at : at + int(rng.integers(1, 9))]
    return bytes(data)
