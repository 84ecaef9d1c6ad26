"""This file turns the weights of one example into lengths of what heads move, with what the model gave for each key."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput, NotStored
from attnstore.reduce.norms import VARIANTS, by_layer, has_variant, layer_norms, norm_maps
from attnstore.store.known_lists import KnownLists

if TYPE_CHECKING:
    from attnstore.store.engine import Engine

Floats = NDArray[np.float32]

Weights = Literal["attention", "norm", "layer_norm", "residual_norm", "residual_norm_ln", "gradient", "integrated"]
"""What a map shows: the weights; weight times |f(x)| of the key, by head; or |sum over heads of weight f(x)| of all
heads of a layer together, alone, with the query's own stream, and after the norm of the sum (see `reduce/norms.py`). Or
evidence that lies beside the weights: derivatives of the loss by them, and their shares in a class's logit."""

DERIVATIVES = ("gradient", "integrated")
"""Weights that are read from arrays of their own."""


def check_weights(weights: str, head: object, doing: str) -> None:
    """Raise BadInput for weights that do not exist, or some heads where all of a layer are taken together."""
    if weights not in get_args(Weights):
        raise BadInput(doing, f"weights={weights!r}", f"one of {', '.join(get_args(Weights))}")
    if weights in VARIANTS and head is not None:
        raise BadInput(doing, f"head={head!r}", f"no head, since weights={weights!r} are of all heads together")


def lengths(
    engine: "Engine", kind: str, example: int, layers: Sequence[int], heads: Sequence[int], maps: Floats, weights: str
) -> Floats:
    """Lengths [layer, head, query, key] of `maps`, or [layer, 1, query, key] where heads are taken together."""
    shape, n_keys = engine.contents.info.kinds[kind], maps.shape[3]
    doing = f"reading the {kind} map of example {example} with weights={weights!r}"
    if weights == "norm":
        rows = KnownLists(engine.database, "value_norms", doing).of(kind, [example], [n_keys])[0]
        norms = rows["value_norm"].reshape(n_keys, shape.layers, shape.heads).transpose(1, 2, 0)
        return norm_maps(maps, norms[np.ix_(layers, heads)])
    rows = KnownLists(engine.database, "value_grams", doing).of(kind, [example], [shape.layers * n_keys])[0]
    grams = list(by_layer(rows, shape.layers))
    if not has_variant(grams[0], weights):
        found = (
            f"{kind} maps have no stream" if weights == "residual_norm" else f"{kind} layers end in no norm of a sum"
        )
        raise NotStored(doing, found, "layer_norm" if weights == "residual_norm" else "residual_norm")
    return np.stack([layer_norms(own, grams[layer], weights) for own, layer in zip(maps, layers, strict=True)])[
        :, None
    ].astype(np.float32)
