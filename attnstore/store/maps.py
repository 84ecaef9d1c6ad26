"""This file reads the attention maps of one example, of tokens or of words, whole or a part."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput, NotFound, NotStored
from attnstore.format.quantise import Floats
from attnstore.reduce.axes import Axis
from attnstore.reduce.norms import VARIANTS
from attnstore.reduce.pieces import pieces_of
from attnstore.reduce.words import PieceMode, word_map
from attnstore.store.attention_map import AttentionMap
from attnstore.store.cells import NO_KEY, Cells
from attnstore.store.norm_weights import DERIVATIVES, Weights, check_weights, lengths
from attnstore.store.places import Places
from attnstore.store.rectangles import rectangles

if TYPE_CHECKING:
    from attnstore.store.store import Store

Level = Literal["token", "word"]
HIDEABLE = ("special", "cls", "sep", "punct")
"""Classes of tokens that `hide` takes: every special token, [CLS], [SEP], and exactly '.' or ','."""


def attention(
    store: "Store",
    example: int | str,
    *,
    kind: str | None = None,
    layer: int | Sequence[int] | None = None,
    head: int | Sequence[int] | None = None,
    level: Level = "token",
    pieces: PieceMode = "mean",
    specials: bool = True,
    tokens: slice | None = None,
    hide: Sequence[str] = (),
    renormalise: bool = False,
    weights: Weights = "attention",
) -> AttentionMap:
    """The map of one example, by number or by name.

    One `layer` or `head` drops its axis; several, or None for all, keep it. `kind` None is the store's first. At
    level "word" the columns of a word's pieces are added and its rows combined as `pieces` says. `specials` False
    leaves out special tokens (at level "word" whatever belongs to no word), `tokens` all but a range of positions on
    both axes. `hide` sets the columns of these classes of tokens to 0, and `renormalise` then divides each row by its
    sum (Clark et al. 2019, figures 1 and 5). `weights` "norm" are lengths, weight times |f(x)| of the key, which are
    what a head moves; "layer_norm", "residual_norm" and "residual_norm_ln" those of all heads together, a map without
    the axis head (Kobayashi et al. 2020, 2021). "gradient" and "integrated" are evidence: the derivative of the loss by
    each weight, 0 where a causal map has none, and each weight's share in a class's logit (Hao et al. 2021); there are
    none of words, and they are not renormalised. Raises NotFound, BadInput, NotStored and Damaged.
    """
    number, name = _example(store, example)
    kind = store.checked_kind(kind)
    doing = f"reading the {kind} map of example {number}"
    shape, cells = store.info.kinds[kind], store.engine.cells
    layers, heads = _numbers("layer", layer, shape.layers, doing), _numbers("head", head, shape.heads, doing)
    _check_options(level, hide, doing)
    check_weights(weights, head, doing)
    if weights in DERIVATIVES:
        _check_derivatives(weights, level, renormalise, doing)
    else:
        cells.check_kept(kind, layers, heads, doing)
    if cells.topk and (level == "word" or renormalise or weights in VARIANTS):
        raise NotStored(
            doing,
            f"this store kept the {cells.topk} largest weights of a row",
            "every weight, which sums over words, rows and heads need",
            "Ask for level='token' without renormalise, and weights 'attention' or 'norm'",
        )
    place = store.engine.places.find(kind, number)
    if place is None:
        raise NotStored(doing, f"{name} has no map of this kind", f"an example with a {kind} map")
    frame = store.engine.frames.frame(place.segment, kind, number)
    maps = _read(cells, place, layers, heads, len(frame.keys), weights if weights in DERIVATIVES else None)
    if weights != "attention" and weights not in DERIVATIVES:
        maps = lengths(store.engine, kind, number, layers, heads, maps, weights)
    if level == "word":
        maps = word_map(maps, frame, pieces=pieces, specials=specials)
    labels = {side: _labels(store, number, side, level) for side in (shape.queries, shape.keys)}
    queries = _units(frame.queries, level, specials, labels[shape.queries])
    keys = _units(frame.keys, level, specials, labels[shape.keys])
    if level == "token" and not specials:
        maps = maps[..., queries.chosen[:, None], keys.chosen]
    if tokens is not None:
        if not frame.is_self:
            raise BadInput(doing, f"tokens={tokens}", "a map of one text onto itself, for a range of positions")
        maps, queries, keys = maps[..., tokens, tokens], queries.cut(tokens), keys.cut(tokens)
    for item in hide:
        maps[..., keys.classes[item]] = 0
    if renormalise:
        total = maps.sum(axis=-1, keepdims=True)
        maps = np.divide(maps, np.where(total > 0, total, 1), dtype=np.float32)
    if weights in VARIANTS:
        head, heads = 0, []
    fixed = tuple(axis for axis, wanted in enumerate((layer, head)) if isinstance(wanted, SupportsIndex))
    maps = np.ascontiguousarray(maps.squeeze(fixed), np.float32)
    dims = tuple(dim for axis, dim in enumerate(("layer", "head", "query", "key")) if axis not in fixed)
    return AttentionMap(
        maps, dims, tuple(layers), tuple(heads), queries.labels, keys.labels, kind, level, number, name, weights
    )


@dataclass(frozen=True, slots=True)
class _Units:
    """Tokens or words along one axis: `chosen` [unit] in the map, the label of each, and its classes."""

    chosen: NDArray[np.intp]
    labels: tuple[str, ...]
    classes: dict[str, NDArray[np.bool_]]

    def cut(self, span: slice) -> "_Units":
        classes = {name: flags[span] for name, flags in self.classes.items()}
        return _Units(self.chosen[span], self.labels[span], classes)


def _units(axis: Axis, level: Level, specials: bool, texts: tuple[list[str], list[str]]) -> _Units:
    """The units along an axis; `texts` are the spellings of tokens and the forms of words."""
    token_texts, forms = texts
    flags = {"special": axis.special, "cls": axis.cls, "sep": axis.sep, "punct": axis.punct}
    if level == "token":
        chosen = np.arange(len(axis)) if specials else np.flatnonzero(~axis.special)
        return _Units(
            chosen,
            tuple(token_texts[token] for token in chosen.tolist()),
            {name: flag[chosen] for name, flag in flags.items()},
        )
    if not specials:
        # The index is that of the example's words: one without tokens has a row and a column of zeros.
        none = np.zeros(axis.n_words, bool)
        units = pieces_of(axis)
        punct = none.copy()
        punct[units.word] = axis.punct[units.start]
        return _Units(np.arange(axis.n_words), tuple(forms), {**dict.fromkeys(flags, none), "punct": punct})
    units = pieces_of(axis, specials=True)
    labels = (
        token_texts[start] if word < 0 else forms[word]
        for word, start in zip(units.word.tolist(), units.start.tolist(), strict=True)
    )
    return _Units(np.arange(len(units)), tuple(labels), {name: flag[units.start] for name, flag in flags.items()})


def _labels(store: "Store", number: int, side: str, level: Level) -> tuple[list[str], list[str]]:
    doing, params = f"reading the labels of example {number}", {"example": number, "side": side}
    text = "select text from tokens where example = $example and side = $side order by token"
    tokens = store.engine.database.run(text, params, doing=doing)["text"].to_pylist()
    if level == "token":
        return [item or "" for item in tokens], []
    text = "select form from words where example = $example and side = $side order by word"
    forms = store.engine.database.run(text, params, doing=doing)["form"].to_pylist()
    return [item or "" for item in tokens], [item or "" for item in forms]


def _read(
    cells: Cells, place: Places, layers: list[int], heads: list[int], n_keys: int, derivative: str | None
) -> Floats:
    """Weights [layer, head, query, key] of one example, or derivatives by them.

    NaN where a store of the largest weights has none.
    """
    rows, width = int(place.n_rows[0]), int(place.n_keys[0])
    parts = list(rectangles([(layer, head) for layer in layers for head in heads], rows * width))
    if (
        derivative is None
        and not cells.topk
        and len(parts) == 1
        and sorted(layers) == layers
        and sorted(heads) == heads
    ):
        return next(cells.maps(place, parts[0]))
    result = np.full((len(layers), len(heads), rows, n_keys), np.nan, np.float32)
    span = slice(place.start, place.stop)
    for rectangle in parts:
        where = (place.segment, place.kind, rectangle.layer, rectangle.head, span)
        found = cells.weights(*where) if derivative is None else cells.derivatives(derivative, *where)
        weights = found.reshape(*rectangle.shape, rows, width)
        to_layer = np.array([layers.index(layer) for layer in range(rectangle.layer.start, rectangle.layer.stop)])
        to_head = np.array([heads.index(head) for head in range(rectangle.head.start, rectangle.head.stop)])
        if cells.topk:
            # Each weight goes to its place at once: a second map with every key is what long texts have no room for.
            keys = cells.keys(*where).reshape(weights.shape)
            used = layer, head, row, _ = np.nonzero(keys != NO_KEY)
            result[to_layer[layer], to_head[head], row, keys[used]] = weights[used]
        else:
            result[np.ix_(to_layer, to_head)] = weights
    return result


def _example(store: "Store", example: int | str) -> tuple[int, str]:
    """Number and name of an example."""
    database, doing = store.engine.database, f"reading the map of example {example!r}"
    if isinstance(example, str):
        found = database.run("select example from examples where name = $name", {"name": example}, doing=doing)
        numbers = found["example"].to_pylist()
        if len(numbers) > 1:
            raise BadInput(doing, f"{len(numbers)} examples of that name", f"a number, such as {numbers[0]}")
        if numbers:
            return int(numbers[0]), example
        text = "select name from examples order by jaro_winkler_similarity(name, $name) desc, example limit 3"
        near = database.run(text, {"name": example}, doing=doing)["name"].to_pylist()
        raise NotFound(doing, "there is none of that name", f"one such as {', '.join(map(repr, near))}")
    try:
        number = operator.index(example)
    except TypeError:
        raise BadInput(doing, f"{example!r}", "the number of an example, or its name") from None
    known = store.engine.places.examples
    index = int(np.searchsorted(known, number))
    if index == len(known) or known[index] != number:
        span = f"one of {known[0]}-{known[-1]}" if len(known) else "none: this store has no examples"
        raise NotFound(doing, f"example={number}", span)
    return number, str(store.engine.places.names[index])


def _numbers(word: str, wanted: Any, most: int, doing: str) -> list[int]:
    """The layers or heads that are wanted, in the order given; all for None."""
    if wanted is None:
        return list(range(most))
    try:
        chosen = [operator.index(item) for item in ([wanted] if isinstance(wanted, SupportsIndex) else wanted)]
    except TypeError:
        raise BadInput(doing, f"{word}={wanted!r}", f"a {word}, several, or None for all") from None
    if outside := [item for item in chosen if not 0 <= item < most]:
        raise NotFound(doing, f"{word}={outside[0]}", f"a {word} of this store, 0-{most - 1}")
    if len(set(chosen)) < len(chosen) or not chosen:
        raise BadInput(doing, f"{word}={wanted!r}", f"each {word} once, at least one")
    return chosen


def _check_derivatives(weights: str, level: str, renormalise: bool, doing: str) -> None:
    if level == "word" or renormalise:
        asked = 'level="word"' if level == "word" else "renormalise=True"
        raise BadInput(doing, f'weights="{weights}" with {asked}', "derivatives by the weights of tokens, as they are")


def _check_options(level: str, hide: Sequence[str], doing: str) -> None:
    if level not in ("token", "word"):
        raise BadInput(doing, f"level={level!r}", "'token' or 'word'")
    if isinstance(hide, str) or any(item not in HIDEABLE for item in hide):
        raise BadInput(doing, f"hide={hide!r}", f"a sequence of {', '.join(HIDEABLE)}")
