"""This file turns weights into lengths: how much a head, or all heads of a layer, move from a key to a query.

Attention weighs vectors of different lengths; what arrives is |weight f(x)|, not the weight (Kobayashi et al. 2020).
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.columns import Columns, column

VARIANTS = ("layer_norm", "residual_norm", "residual_norm_ln")
"""What all heads of a layer move together; with the token's own stream, which a query adds to what it takes from
itself; and that after the norm of the sum, its scale frozen (Attn-N, AttnRes-N and AttnResLn-N of the 2021 paper)."""

_GRAMS = ("gram", "stream", "square", "gram_ln", "stream_ln", "square_ln", "scale")

_COLUMNS = {"layer_norm": ("gram", None), "residual_norm": ("gram", ""), "residual_norm_ln": ("gram_ln", "_ln")}


def norm_maps(weights: FloatArray, norms: FloatArray, *, shares: bool = False) -> NDArray[np.float32]:
    """|weight f(x)| = weight |f(x)| of `weights` [layer, head, query, key] and lengths `norms` [layer, head, key].

    With `shares` each row is divided by its sum; a row without length stays 0.
    """
    found = np.asarray(weights * norms[:, :, None], np.float32)
    if not shares:
        return found
    total = found.sum(axis=-1, keepdims=True)
    return np.asarray(found / np.where(total > 0, total, 1), np.float32)


def has_variant(rows: Columns, variant: str) -> bool:
    """Whether the Gram matrices that it needs are there: cross maps have no stream, pre-norm models no such norm."""
    gram, stream = _COLUMNS[variant]
    names = [gram, *([] if stream is None else [f"stream{stream}"])]
    return all(rows[name].size and not np.isnan(rows[name].ravel()[0]) for name in names)


def layer_norms(weights: FloatArray, rows: Columns, variant: str) -> NDArray[np.float64]:
    """|sum over heads of weight f(x)| [query, key] of one layer's `weights` [head, query, key], as a root of a Gram a.

    `rows` are the layer's Gram matrices by key token: `gram` [key, pair], `stream` [key, head], `square` [key], the
    same with `_ln`, and `scale` [key]; see the table value_grams. BadInput for an unknown variant or rows that do not
    fit the map.
    """
    if variant not in VARIANTS:
        raise BadInput("measuring what a layer moves", f"{variant!r}", f"one of {', '.join(VARIANTS)}")
    name, stream = _COLUMNS[variant]
    n_heads, _, n_keys = weights.shape
    packed = np.asarray(rows[name], np.float64)
    row, other = np.triu_indices(n_heads)
    if packed.shape != (n_keys, len(row)):
        raise BadInput("measuring what a layer moves", f"{name} {list(packed.shape)}", f"{[n_keys, len(row)]}")
    gram = np.empty((n_keys, n_heads, n_heads))
    gram[:, row, other] = gram[:, other, row] = packed
    by_key = weights.transpose(2, 1, 0).astype(np.float64)  # [key, query, head]
    squares = np.vecdot(by_key @ gram, by_key).T
    if stream is not None:
        token = np.arange(n_keys)
        own = by_key[token, token]
        squares[token, token] += 2 * np.vecdot(own, rows[f"stream{stream}"]) + rows[f"square{stream}"]
    # A length that is 0 may come out as the root of -1e-9.
    found: NDArray[np.float64] = np.sqrt(np.maximum(squares, 0))
    return found * np.asarray(rows["scale"], np.float64)[:, None] if variant == "residual_norm_ln" else found


def layer_norm_facts(weights: FloatArray, frame: Frame, rows: Columns) -> Columns:
    """How much the heads of each layer move together from class to class, of `weights` [layer, head, query, key].

    Columns [row]: `layer`, `query_class`, `key_class`, `n_queries`, `n_pairs` (those that a causal query sees), and for
    each of VARIANTS the lengths of all pairs, summed; NaN where the model has none. `rows`: `class` [token], strings,
    and the Gram matrices of every layer [layer and key, …], layer by layer.
    """
    grams = {name: rows[name] for name in _GRAMS}
    names, place = np.unique(column(rows, "class", len(frame.queries)).astype(str), return_inverse=True)
    member = np.eye(len(names))[place]  # [token, class]
    visible = np.tri(len(frame.queries)) if frame.causal else np.ones((len(frame.queries),) * 2)
    pairs = member.T @ visible @ member
    n_rows, n_layers = pairs.size, len(weights)
    found: dict[str, NDArray[np.generic]] = {
        "layer": np.repeat(np.arange(n_layers, dtype=np.int16), n_rows),
        "query_class": np.tile(np.repeat(names.astype(object), len(names)), n_layers),
        "key_class": np.tile(np.tile(names.astype(object), len(names)), n_layers),
        "n_queries": np.tile(np.repeat(member.sum(axis=0), len(names)), n_layers).astype(np.int32),
        "n_pairs": np.tile(pairs.ravel(), n_layers).astype(np.int32),
    }
    for variant in VARIANTS:
        sums = np.full((n_layers, n_rows), np.nan)
        for layer, own in enumerate(by_layer(grams, n_layers)):
            if has_variant(own, variant):
                sums[layer] = (member.T @ (layer_norms(weights[layer], own, variant) * visible) @ member).ravel()
        found[f"{variant}_sum"] = sums.ravel()
    return found


def by_layer(rows: Columns, layers: int) -> Iterator[Columns]:
    """Rows [layer and key, …], layer by layer, as those of one layer after another."""
    for layer in range(layers):
        yield {name: values[len(values) // layers * layer :][: len(values) // layers] for name, values in rows.items()}
