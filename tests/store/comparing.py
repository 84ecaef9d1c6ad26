"""This file makes pairs of small stores, for the tests of comparisons."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attnstore.format.manifest import Kind
from attnstore.store.comparison import Comparison, compare
from tests.store.making import Floats, Made, Text, make_store, random_maps

ONE_HEAD = Kind(1, 1, 1, "source", "source", False)


def tiny(name: str, tokens: Sequence[str], weights: Any, columns: dict[str, Any] | None = None) -> Made:
    """An example of one head, whose tokens are words of their own."""
    words = [{"form": token} for token in tokens]
    text = Text(tokens, [None] * len(tokens), range(len(tokens)), words)
    return Made(name, text, {"encoder": np.array(weights, np.float32)[None, None]}, columns=columns or {})


def pair(place: Path, a: Sequence[Made], b: Sequence[Made], **settings: Any) -> Comparison:
    """Two exact stores of one head, compared."""
    options: dict[str, Any] = {"kinds": {"encoder": ONE_HEAD}, "precision": "exact", **settings}
    return compare(make_store(place / "a.attn", a, **options), make_store(place / "b.attn", b, **options))


def others(made: Sequence[Made], seed: int = 5) -> list[Made]:
    """The same examples with other maps."""
    rng = np.random.default_rng(seed)
    return [replace(one, maps={k: random_maps(rng, *maps.shape) for k, maps in one.maps.items()}) for one in made]


def by_hand(p: Floats, q: Floats, eps: float = 0.001) -> tuple[float, float, float]:
    """Cosine, Jensen-Shannon divergence and total variation of two maps [query, key], row by row."""
    one, other = p.astype(float), q.astype(float)
    angle = float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))
    divergence, moved = [], []
    for x, y in zip(one, other, strict=True):
        u, v = ((1 - eps) * row + eps / len(row) for row in (x, y))
        middle = (u + v) / 2
        divergence.append(float((u * np.log(u / middle)).sum() + (v * np.log(v / middle)).sum()) / 2)
        moved.append(float(np.abs(x - y).sum()) / 2)
    return angle, float(np.mean(divergence)), float(np.mean(moved))


def turned_stores(made: list[Made], place: Path) -> Iterator[tuple[Comparison, list[Made]]]:
    """A store of the examples compared with one of the same, backwards, of other maps and in segments of other size."""
    other = others(made)
    a = make_store(place / "a.attn", made, precision="exact")
    b = make_store(place / "b.attn", other[::-1], precision="exact", per_segment=2)
    with compare(a, b) as comparison:
        yield comparison, other
