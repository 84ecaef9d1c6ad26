"""This file computes the statistics of every row of a map, from which token facts and head facts are taken."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.compiled import is_compiling
from attnstore.reduce.axes import Axis, BoolArray, FloatArray, Frame, IntArray
from attnstore.reduce.blocks import CELLS, block_steps, check_map, gather, spans, work_dtype
from attnstore.reduce.compiled_rows import fill_rows

Drop = Literal["sep", "special"]
"""Which tokens the variants of confidence leave out: [SEP] only, or every special token."""

STATISTICS = ("max", "entropy", "smoothed", "distance", "cls", "sep", "punct", "kept", "max_kept", "renormalised")
"""Per row: largest weight; exact and smoothed entropy (nats); mean distance in tokens; weight on [CLS], on [SEP],
on "." and ",", on the kept keys; largest weight among kept keys; the same divided by the weight on kept keys."""

_MAX, _ENTROPY, _SMOOTHED, _DISTANCE, _CLS, _SEP, _PUNCT, _KEPT, _MAX_KEPT, _RENORMALISED = range(len(STATISTICS))

# Added before the logarithm, it turns 0 ln 0 into 0 and is lost in the rounding of any weight above 1e-30.
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Rows:
    """`argmax` [head, query], and `table` [statistic, head, query] in the order of STATISTICS."""

    argmax: IntArray
    table: FloatArray

    def named(self, statistic: str) -> FloatArray:
        """The values [head, query] of one of STATISTICS."""
        values: FloatArray = self.table[STATISTICS.index(statistic)]
        return values


def kept_tokens(axis: Axis, drop: Drop) -> BoolArray:
    """Which tokens [token] remain when `drop` is left out; BadInput for an unknown `drop`."""
    if drop not in get_args(Drop):
        raise BadInput("reducing an attention map", f"drop = {drop!r}", " or ".join(map(repr, get_args(Drop))))
    return ~(axis.sep if drop == "sep" else axis.special)


def check_eps(eps: float) -> None:
    """Raise BadInput unless 0 <= eps < 1."""
    if not 0 <= eps < 1:
        raise BadInput("smoothing an attention map", f"eps = {eps!r}", "0 <= eps < 1")


def largest(block: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
    """The key of the largest weight of each row of [head, query, key], the lowest on a tie, and that weight."""
    # A look-up at the arg-max is less than half the price of a second pass for the maximum.
    index = block.argmax(axis=-1)
    return index, gather(block, index)


def exact_entropy(block: FloatArray, scratch: FloatArray) -> FloatArray:
    """Entropy [head, query] of the rows in nats, with 0 ln 0 = 0; overwrites `scratch` (shape of `block`)."""
    np.add(block, _TINY, out=scratch)
    np.log(scratch, out=scratch)
    return _entropy(block, scratch)


def smoothed_entropy(
    block: FloatArray, eps: float, floor: FloatArray | float, scratch: FloatArray, logs: FloatArray
) -> FloatArray:
    """Entropy [head, query] in nats of (1 - eps) * weight + `floor`; overwrites `scratch` and `logs`."""
    np.multiply(block, 1 - eps, out=scratch)
    np.add(scratch, floor, out=scratch)
    np.log(scratch, out=logs)
    return _entropy(scratch, logs)


def _entropy(weights: FloatArray, logs: FloatArray) -> FloatArray:
    # Only rounding (a weight of 1 + 1e-7) makes an entropy negative; adding 0 turns -0 into 0.
    entropy: FloatArray = np.maximum(-np.vecdot(weights, logs), 0) + 0
    return entropy


def _smoothing_floor(queries: slice, n_keys: int, eps: float, causal: bool, dtype: np.dtype[np.floating]) -> FloatArray:
    """What smoothing adds to the weights of these rows: [1, 1], or [query, key] where rows see different keys.

    A hidden key gets 1, so that its term 1 ln 1 vanishes.
    """
    if not causal:
        return np.full((1, 1), max(eps / n_keys, _TINY), dtype)
    query = np.arange(queries.start, queries.stop)[:, None]
    floor: FloatArray = np.where(np.arange(n_keys) <= query, np.maximum(eps / (query + 1), _TINY), 1).astype(dtype)
    return floor


def row_statistics(weights: FloatArray, frame: Frame, *, eps: float, drop: Drop, compiled: bool = False) -> Rows:
    """Statistics of every row of `weights` [head, query, key].

    Smoothed entropy is that of (1 - eps) * weight + eps / T, T the number of keys that the row sees: all, or
    in a causal frame those up to itself. Weights on keys that a causal row cannot see must be 0.
    A row without weight on kept keys counts 0 in `renormalised`. `compiled` takes float32 weights through numba where
    it is installed: `argmax`, `max` and `max_kept` are the same to the bit, sums and entropies within 2e-6 of those
    that NumPy adds up in another order. BadInput for a shape that is not the frame's, an unknown `drop`, or weights
    that are negative or not finite.
    """
    check_map(weights, frame, n_axes=3)
    check_eps(eps)
    dtype = work_dtype(weights)
    kept = kept_tokens(frame.keys, drop)
    table = np.zeros((len(STATISTICS), *weights.shape[:2]), dtype)
    argmax = np.empty(weights.shape[:2], np.int32)
    if compiled and weights.dtype == np.float32 and is_compiling():
        fill_rows(weights, frame, kept, eps, argmax, table)
    else:
        _fill_rows(weights, frame, kept, eps, argmax, table)
    _check_finite(table)
    np.divide(table[_MAX_KEPT], table[_KEPT], out=table[_RENORMALISED], where=table[_KEPT] > 0)
    return Rows(argmax, table)


def _fill_rows(
    weights: FloatArray, frame: Frame, kept: BoolArray, eps: float, argmax: IntArray, table: FloatArray
) -> None:
    """All statistics but `renormalised`, a block of rows at a time."""
    n_heads, n_queries, n_keys = weights.shape
    dtype = table.dtype
    selectors = np.array([frame.keys.cls, frame.keys.sep, frame.keys.punct, kept], dtype).T
    kept_factor = np.ascontiguousarray(selectors[:, 3])
    head_step, query_step = block_steps(n_queries, n_keys)
    scratch = np.empty((2, min(max(CELLS, n_keys), weights.size)), dtype)
    position = np.arange(n_keys, dtype=dtype)

    for queries in spans(n_queries, query_step):
        seen = queries.stop if frame.causal else n_keys
        floor = _smoothing_floor(queries, seen, eps, frame.causal, dtype)
        distance = np.abs(position[queries, None] - position[:seen]) if frame.is_self else None
        for heads in spans(n_heads, head_step):
            block = weights[heads, queries, :seen].astype(dtype, copy=False)
            first, second = (part[: block.size].reshape(block.shape) for part in scratch)
            into = table[:, heads, queries]
            with np.errstate(invalid="ignore"):  # what is no weight ends as NaN or infinity, refused below
                argmax[heads, queries], into[_MAX] = largest(block)
                into[_ENTROPY] = exact_entropy(block, first)
                into[_SMOOTHED] = smoothed_entropy(block, eps, floor, first, second)
                if distance is not None:
                    np.vecdot(block, distance, out=into[_DISTANCE])
                into[_CLS : _KEPT + 1] = (block @ selectors[:seen]).transpose(2, 0, 1)
                np.multiply(block, kept_factor[:seen], out=first)
                into[_MAX_KEPT] = largest(first)[1]


def _check_finite(table: FloatArray) -> None:
    if np.isfinite(table).all():
        return
    head, query = np.argwhere(~np.isfinite(table).all(axis=0))[0]
    raise BadInput(
        "reducing an attention map",
        f"a negative weight or one that is not a finite number in head {head}, query {query}",
        "weights between 0 and 1",
        "A row of which every key is masked gives NaN: cut padded queries off.",
    )
