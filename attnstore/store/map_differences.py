"""This file compares the maps of two stores, head by head, over pairs of examples."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from tqdm import tqdm

from attnstore.errors import BadInput, NotStored
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.divergence import cosine, jensen_shannon_between, total_variation
from attnstore.reduce.word_cells import words_with_tokens
from attnstore.reduce.words import word_map
from attnstore.store.fill import INGEST
from attnstore.store.places import Places
from attnstore.store.rectangles import Rectangle, rectangles

if TYPE_CHECKING:
    from attnstore.store.engine import Engine

SCHEMA = pa.schema(
    [
        ("example_a", pa.int32()),
        ("example_b", pa.int32()),
        ("kind", pa.string()),
        ("layer", pa.int16()),
        ("head", pa.int16()),
        ("cosine", pa.float64()),
        ("js", pa.float64()),
        ("tv", pa.float64()),
    ]
)
"""One row for each pair of examples and head: the cosine of the flattened maps (null where one is zero throughout),
and the means over query rows of their Jensen-Shannon divergence in nats and of half the sum of |a - b|."""

DEFAULTS: Mapping[str, object] = {"kind": None, "level": "token", "eps": 0.001}
"""What a question may ask the table for; kind null is every kind that both stores have."""

Partners = Mapping[int, int]
"""For an example of A the one of B."""


def differences(
    a: "Engine", b: "Engine", partners: Partners, *, kind: str, level: str, eps: float, doing: str
) -> pa.Table:
    """The table SCHEMA for these pairs, of the layers and heads whose maps both stores keep.

    At level `token` both maps have to be over equal tokens. At level `word` they are turned into maps between words
    first: weights to and from special tokens are left out without renormalising, and so are words to which one of the
    tokenizers gave no token. Pairs that have no map or no word left are left out. BadInput where the stores have not
    as many layers and heads, NotStored where one does not keep whole maps.
    """
    layers, heads = _shared_heads(a, b, kind, doing)
    places = [place[np.isin(place.example, list(partners))] for place in a.places.of(kind)]
    blocks = [block for place in places if len(place) for block in place.blocks(whole=True)]
    parts = [SCHEMA.empty_table()]
    with tqdm(
        total=sum(map(len, blocks)),
        desc=f"map_differences({kind}, {level})",
        unit=" examples",
        disable=None,
        leave=False,
    ) as progress:
        for block in blocks:
            values = _Block(a, b, block, partners, level, eps).compare(layers, heads)
            parts.append(_table(values, partners, kind, layers, heads))
            progress.update(len(block))
    return pa.concat_tables(parts)


def check_shapes(a: "Engine", b: "Engine", kind: str, doing: str) -> None:
    """Raise BadInput unless both models have as many layers and heads, so that a head of A stands for one of B."""
    shapes = [engine.contents.info.kinds[kind] for engine in (a, b)]
    counts = [f"{shape.layers} layers of {shape.heads} heads" for shape in shapes]
    if counts[0] != counts[1]:
        raise BadInput(
            doing,
            f"the {kind} of A has {counts[0]}, that of B {counts[1]}",
            "two models of one shape, whose heads stand for one another",
            "Ask each store for itself, or compare what is no property of one head: compare/summary, compare/relations",
        )


def _shared_heads(a: "Engine", b: "Engine", kind: str, doing: str) -> tuple[list[int], list[int]]:
    check_shapes(a, b, kind, doing)
    for name, engine in (("A", a), ("B", b)):
        kept = engine.contents.info.kept
        if kept.maps != "all":
            maps = "no maps" if kept.maps == "none" else f"only the {kept.topk} largest weights of a row"
            raise NotStored(doing, f"{name} kept {maps}", "whole maps of both", INGEST.format('maps = "all"'))
    (layers_a, heads_a), (layers_b, heads_b) = a.cells.kept(kind), b.cells.kept(kind)
    layers, heads = sorted({*layers_a} & {*layers_b}), sorted({*heads_a} & {*heads_b})
    if not layers or not heads:
        found = f"A kept layers {layers_a} and heads {heads_a}, B layers {layers_b} and heads {heads_b}"
        raise NotStored(doing, found, "some that both kept", INGEST.format("layers and heads left out"))
    return layers, heads


class _Block:
    """Neighbouring examples of A with their partners of B, wherever those lie."""

    def __init__(self, a: "Engine", b: "Engine", block: Places, partners: Partners, level: str, eps: float) -> None:
        self._a, self._b, self._level, self._eps = a, b, level, eps
        wanted = [partners[example] for example in block.example.tolist()]
        found = [place[np.isin(place.example, wanted)] for place in b.places.of(block.kind)]
        self._there = [run for place in found if len(place) for run in place.blocks(whole=True)]
        held = {example for run in self._there for example in run.example.tolist()}
        self._own = block[np.array([partner in held for partner in wanted], bool)]
        self._partners = partners

    def compare(self, layers: list[int], heads: list[int]) -> dict[int, NDArray[np.float64]]:
        """For each example of A cosine, js and tv: [3, layer, head] of these layers and heads."""
        if not len(self._own):
            return {}
        found: dict[int, NDArray[np.float64]] = {}
        pairs = [(layer, head) for layer in layers for head in heads]
        for part in rectangles(pairs, self._own.stop - self._own.start):
            theirs = dict(item for run in self._there for item in _maps(self._b, run, part))
            at = np.ix_(
                range(3),
                [layers.index(layer) for layer in range(part.layer.start, part.layer.stop)],
                [heads.index(head) for head in range(part.head.start, part.head.stop)],
            )
            for example, (ours, own_frame) in _maps(self._a, self._own, part):
                maps, frame = theirs[self._partners[example]]
                one, other = (ours, maps) if self._level == "token" else _of_words(ours, own_frame, maps, frame)
                if not one.size:
                    continue
                if example not in found:
                    found[example] = np.full((3, len(layers), len(heads)), np.nan)
                js = jensen_shannon_between(one, other, eps=self._eps)
                found[example][at] = [cosine(one, other), js, total_variation(one, other)]
        return found


def _maps(engine: "Engine", run: Places, part: Rectangle) -> Iterator[tuple[int, tuple[FloatArray, Frame]]]:
    """Example, its map [layer, head, query, key] and its frame."""
    for example, maps in zip(run.example.tolist(), engine.cells.maps(run, part), strict=True):
        yield example, (maps, engine.frames.frame(run.segment, run.kind, example))


def _of_words(
    one: FloatArray, one_frame: Frame, other: FloatArray, other_frame: Frame
) -> tuple[FloatArray, FloatArray]:
    """Both maps between the words that have tokens in both."""
    queries = words_with_tokens(one_frame.queries) & words_with_tokens(other_frame.queries)
    keys = words_with_tokens(one_frame.keys) & words_with_tokens(other_frame.keys)
    maps = (word_map(one, one_frame), word_map(other, other_frame))
    ours, theirs = (weights[..., queries, :][..., keys] for weights in maps)
    return ours, theirs


def _table(
    values: Mapping[int, NDArray[np.float64]], partners: Partners, kind: str, layers: list[int], heads: list[int]
) -> pa.Table:
    if not values:
        return SCHEMA.empty_table()
    each = len(layers) * len(heads)
    a = np.repeat(np.array(list(values), np.int32), each)
    b = np.repeat(np.array([partners[example] for example in values], np.int32), each)
    layer = np.tile(np.repeat(np.array(layers, np.int16), len(heads)), len(values))
    head = np.tile(np.array(heads, np.int16), len(values) * len(layers))
    numbers = np.stack(list(values.values()), axis=1).reshape(3, -1)
    keys = [pa.array(column) for column in (a, b, np.full(len(a), kind, object), layer, head)]
    # A map that is zero throughout has no cosine: null.
    return pa.Table.from_arrays([*keys, *(pa.array(row, from_pandas=True) for row in numbers)], schema=SCHEMA)
