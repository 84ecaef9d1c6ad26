"""This file measures how far apart maps are: between the heads of one example, or between two models."""

import math
import sys
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, IntArray
from attnstore.reduce.blocks import CELLS, spans, work_dtype
from attnstore.reduce.compiled import PairSums, compiled_pair_sums
from attnstore.reduce.rows import check_eps

CELLS_OF_A_HEAD = 1024
"""Cells of each head in a block: 144 heads are 0.6 MB of float32. Larger blocks lose digits in their float32 sums and
are no faster, smaller ones pay for their calls."""

DOUBLE_UP_TO = 4096
"""Cells of a head (query rows times keys) up to which float64 is used: over so few, rounding errors of float32 cancel
out badly. They were up to 4e-6 of the mean divergence on 20 tokens; double precision takes three times as long."""

COMPILED_FROM = 1 << 24
"""Pairs of heads times cells from which numba is used unasked: about 15 ms of NumPy."""


def jensen_shannon(
    weights: FloatArray,
    *,
    eps: float = 1e-3,
    rows: NDArray[np.integer] | None = None,
    compiled: bool | None = None,
    double_up_to: int = DOUBLE_UP_TO,
) -> NDArray[np.float64]:
    """Jensen-Shannon divergence [head, head] in nats between heads of `weights` [head, query, key].

    Rows are smoothed, (1 - eps) * weight + eps / T with T keys, and divergences are summed over query rows
    (Clark et al. 2019, section 6): between 0 and n_queries * ln 2. Special tokens and the diagonal are
    included. The heads of all layers may be stacked into one axis.

    `rows`: the query rows to sum over (numbers from 0, as of `sampled_rows`); None for all. Divide by their number
    for the mean per row, which is what different numbers of rows have in common.

    Weights below float64 with more than `double_up_to` cells are added up in float32: by numba where it is installed
    and there is much to do (COMPILED_FROM), else by NumPy. `compiled` True asks for numba whatever there is to do (the
    first call of a process compiles, about a second), False for NumPy. With and without numba the divergences agree
    within 1e-6 of their mean over the pairs of a model's heads; with float64 within 2e-6, and 2e-7 root mean square.
    BadInput for another shape, an eps outside [0, 1) or rows that are not there.
    """
    if weights.ndim != 3:
        raise _shape_error(weights, "[head, query, key]")
    check_eps(eps)
    n_heads, n_queries, n_keys = weights.shape
    if rows is not None:
        _check_rows(rows, n_queries)
        weights = weights[:, rows]
    # JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2: one logarithm per pair and cell instead of three. The entropies
    # are sums over cells, in whatever rows these lie.
    cells = weights.reshape(n_heads, weights.shape[1] * n_keys)
    dtype = work_dtype(weights) if cells.shape[1] > double_up_to else np.dtype(np.float64)
    # For s * p in the place of p, what the logarithm of s adds cancels out in the difference. Between peaked rows, of
    # entropy 0, and flat ones, of entropy ln T, it brings the sums nearer to 0, where float32 is finer.
    scale = 2.0 ** round(math.log2(max(n_keys, 1)) / 2)
    add = _pair_sums(dtype, n_heads * (n_heads + 1) // 2 * cells.shape[1], compiled)
    sums = np.zeros((n_heads, n_heads))
    for span in spans(cells.shape[1], CELLS_OF_A_HEAD):
        add(_smoothed(cells[:, span], n_keys, eps, scale / 2, dtype), sums)
    own = sums.diagonal()
    between = np.triu((own[:, None] + own) / 2 - sums, 1) / scale
    np.maximum(between, 0, out=between)  # rounding may leave -1e-7
    return between + between.T


def sampled_rows(n_queries: int, rows: int) -> IntArray:
    """The numbers of `rows` query rows, evenly spaced: the middle of each of as many equal parts of `n_queries`.

    All of them where `rows` is 0 or at least `n_queries`. The first and the last token, often special ones that attend
    like no other, are among few rows no more than they are among all. BadInput where `rows` is negative.
    """
    if rows < 0:
        raise BadInput("sampling query rows", f"rows = {rows}", "0 for all rows, or more")
    if rows == 0 or rows >= n_queries:
        return np.arange(n_queries, dtype=np.int32)
    return ((2 * np.arange(rows, dtype=np.int64) + 1) * n_queries // (2 * rows)).astype(np.int32)


def condensed(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The pairs of a symmetric `matrix` [head, head], each once: (0, 1), (0, 2), ... (1, 2), ... as in SciPy."""
    upper: NDArray[np.float64] = matrix[np.triu_indices(len(matrix), 1)]
    return upper


def jensen_shannon_between(a: FloatArray, b: FloatArray, *, eps: float = 1e-3) -> NDArray[np.float64]:
    """Mean over query rows of the Jensen-Shannon divergence [...] in nats (0 to ln 2) of `a` and `b` [..., query, key].

    Smoothed as in `jensen_shannon`; for the same heads of two models on the same tokens.
    """
    _check_pair(a, b)
    check_eps(eps)
    total = np.zeros(a.shape[:-2])
    for queries in _row_spans(a):
        p, q = (_smoothed(w[..., queries, :], a.shape[-1], eps, 0.5, work_dtype(w)) for w in (a, b))
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


def _check_rows(rows: NDArray[np.integer], n_queries: int) -> None:
    if rows.ndim != 1 or ((rows < 0) | (rows >= n_queries)).any():
        expected = f"numbers of query rows from 0 to {n_queries - 1}"
        raise BadInput("comparing attention maps", f"rows = {rows.tolist()}", expected)


def _smoothed(weights: FloatArray, n_keys: int, eps: float, factor: float, dtype: np.dtype[np.floating]) -> FloatArray:
    """A new array: the smoothed `weights`, times `factor`. Halves, a power of 2 aside, are what is added to a mixture:
    p / 2 + p / 2 is p to the last digit, and so equal maps are exactly 0 apart."""
    smoothed: FloatArray = weights.astype(dtype, order="C")
    smoothed *= (1 - eps) * factor
    # The smallest normal number keeps the logarithm finite for eps = 0 and is lost in any other sum.
    smoothed += eps / n_keys * factor + float(np.finfo(np.float32).tiny)
    return smoothed


def _pair_sums(dtype: np.dtype[np.floating], work: int, compiled: bool | None) -> PairSums:
    """The loop over pairs for weights of this type: compiled where that is possible, and asked for or worth it."""
    wanted = work >= COMPILED_FROM if compiled is None else compiled
    return (wanted and dtype == np.float32 and compiled_pair_sums()) or _numpy_pair_sums


def _numpy_pair_sums(halves: FloatArray, sums: NDArray[np.float64]) -> None:
    """What `compiled_pair_sums` does, by NumPy: the reference."""
    n_heads = len(halves)
    logarithm, unit = _fastest_logarithm()
    scratch = np.empty((2, *halves.shape), halves.dtype)
    # Pairs (a, a + shift) for one shift at a time: arrays of one shape are added at twice the speed of a broadcast row.
    for shift in range(n_heads):
        mixed, logs = scratch[:, shift:]
        np.add(halves[: n_heads - shift], halves[shift:], out=mixed)
        logarithm(mixed, out=logs)
        diagonal = sums.reshape(-1)[shift : (n_heads - shift) * n_heads : n_heads + 1]
        diagonal += np.vecdot(mixed, logs) * unit


@cache
def _fastest_logarithm() -> tuple[np.ufunc, float]:
    """The logarithm that NumPy is quickest at on this processor, and its unit in nats.

    NumPy has vector code for log from AVX2 on; for log2, then a third faster, with AVX-512 on Linux only. Elsewhere
    log2 goes number by number.
    """
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    wide = {"X86_V4", "AVX512_SKX"} & set(simd.get("found", []))  # one feature; NumPy 2.4 renamed it
    return (np.log2, math.log(2)) if wide and sys.platform == "linux" else (np.log, 1.0)


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
