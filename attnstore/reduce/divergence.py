"""This file measures how far apart maps are: between the heads of one example, or between two models."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray
from attnstore.reduce.blocks import CELLS, spans, work_dtype
from attnstore.reduce.rows import check_eps


def jensen_shannon(weights: FloatArray, *, eps: float = 1e-3) -> NDArray[np.float64]:
    """Jensen-Shannon divergence [head, head] in nats between heads of `weights` [head, query, key].

    Rows are smoothed, (1 - eps) * weight + eps / T with T keys, and divergences are summed over query rows
    (Clark et al. 2019, section 6): between 0 and n_queries * ln 2. Special tokens and the diagonal are
    included. The heads of all layers may be stacked into one axis.
    """
    if weights.ndim != 3:
        raise _shape_error(weights, "[head, query, key]")
    check_eps(eps)
    n_heads = weights.shape[0]
    between = np.zeros((n_heads, n_heads))
    # JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2: one logarithm per pair and cell instead of three. Halves are
    # added, because p/2 + p/2 is p to the last digit, and so equal maps are at a distance of exactly 0.
    for queries in _row_spans(weights):
        halves = _smoothed(weights[:, queries], eps) / 2
        scratch = np.empty((2, *halves.shape), halves.dtype)
        own = _entropies(halves + halves, scratch[1])
        for head in range(n_heads - 1):
            mixed, logs = scratch[:, head + 1 :]
            np.add(halves[head + 1 :], halves[head], out=mixed)
            between[head, head + 1 :] += _entropies(mixed, logs) - (own[head] + own[head + 1 :]) / 2
    np.maximum(between, 0, out=between)  # rounding may leave -1e-7
    return between + between.T


def jensen_shannon_between(a: FloatArray, b: FloatArray, *, eps: float = 1e-3) -> NDArray[np.float64]:
    """Mean over query rows of the Jensen-Shannon divergence [...] in nats (0 to ln 2) of `a` and `b` [..., query, key].

    Smoothed as in `jensen_shannon`; for the same heads of two models on the same tokens.
    """
    _check_pair(a, b)
    check_eps(eps)
    total = np.zeros(a.shape[:-2])
    for queries in _row_spans(a):
        p, q = (_smoothed(weights[..., queries, :], eps) / 2 for weights in (a, b))
        scratch = np.empty(p.shape, np.result_type(p, q))
        total += _entropies(p + q, scratch)
        total -= (_entropies(p + p, scratch) + _entropies(q + q, scratch)) / 2
    mean: NDArray[np.float64] = np.maximum(total, 0) / a.shape[-2]
    return mean


def cosine(a: FloatArray, b: FloatArray) -> NDArray[np.float64]:
    """Cosine [...] of the flattened maps `a` and `b` [..., query, key] (Kovaleva et al. 2019, section 4.3).

    NaN where a map is zero throughout. BadInput where the shapes differ.
    """
    _check_pair(a, b)
    inner = _dot(a, b)
    norms = np.sqrt(_dot(a, a) * _dot(b, b))
    ratio: NDArray[np.float64] = np.divide(inner, norms, out=np.full_like(inner, np.nan), where=norms > 0)
    return ratio


def total_variation(a: FloatArray, b: FloatArray) -> NDArray[np.float64]:
    """Mean over query rows of half the sum of |a - b| [...], 0-1, of maps `a` and `b` [..., query, key].

    BadInput where the shapes differ.
    """
    _check_pair(a, b)
    moved = np.zeros(a.shape[:-2])
    for queries in _row_spans(a):
        difference = a[..., queries, :].astype(work_dtype(a), copy=False) - b[..., queries, :]
        np.abs(difference, out=difference)
        moved += difference.sum(axis=(-1, -2), dtype=np.float64)
    mean: NDArray[np.float64] = moved / (2 * a.shape[-2])
    return mean


def _row_spans(weights: FloatArray) -> Iterator[slice]:
    """Spans of query rows of which, over all maps together, a block holds as many as CELLS allows."""
    return spans(weights.shape[-2], max(1, CELLS * weights.shape[-2] // max(weights.size, 1)))


def _smoothed(weights: FloatArray, eps: float) -> FloatArray:
    # The smallest normal number keeps the logarithm finite for eps = 0 and is lost in any other sum.
    floor = eps / weights.shape[-1] + float(np.finfo(np.float32).tiny)
    smoothed: FloatArray = weights.astype(work_dtype(weights), copy=False) * (1 - eps) + floor
    return smoothed


def _entropies(weights: FloatArray, scratch: FloatArray) -> NDArray[np.float64]:
    """Entropy in nats [...], summed over query rows, of `weights` [..., query, key]; overwrites `scratch`."""
    np.log(weights, out=scratch)
    total: NDArray[np.float64] = -np.vecdot(weights, scratch).sum(axis=-1, dtype=np.float64)
    return total


def _dot(a: FloatArray, b: FloatArray) -> NDArray[np.float64]:
    dtype = np.result_type(work_dtype(a), work_dtype(b))
    rows = np.vecdot(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    return np.asarray(rows.sum(axis=-1, dtype=np.float64))


def _check_pair(a: FloatArray, b: FloatArray) -> None:
    if a.shape != b.shape:
        raise BadInput(
            "comparing two attention maps",
            f"shapes {list(a.shape)} and {list(b.shape)}",
            "equal shapes [..., query, key]",
            "Compare maps of the same tokens: one tokenizer, and padding cut off.",
        )
    if a.ndim < 2:
        raise _shape_error(a, "[..., query, key]")


def _shape_error(weights: FloatArray, expected: str) -> BadInput:
    return BadInput("comparing attention maps", f"weights of shape {list(weights.shape)}", expected)
