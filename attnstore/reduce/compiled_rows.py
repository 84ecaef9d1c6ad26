"""This file compiles the statistics of the rows of a map with numba: one pass over each row instead of a dozen."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.format.compiled import bit_casts
from attnstore.reduce.axes import BoolArray, Frame, IntArray
from attnstore.reduce.compiled import EXPONENT_STEP, LN, UNIT

Floats = NDArray[np.float32]
Tokens = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]

RowLoop = Callable[[Floats, Floats, Tokens, bool, np.float32, IntArray, Floats], None]
"""Weights [head, query, key], a factor [key] (1 for kept keys, else 0), the keys that are [CLS], [SEP] and
punctuation, whether the map is causal, eps; into argmax [head, query] and statistics [statistic, head, query]."""


def fill_rows(
    weights: Floats, frame: Frame, kept: BoolArray, eps: float, argmax: IntArray, table: NDArray[np.floating]
) -> None:
    """What `row_statistics` computes block by block, all but `renormalised`. A row with a negative weight is NaN."""
    axis = frame.keys
    tokens = (np.flatnonzero(axis.cls), np.flatnonzero(axis.sep), np.flatnonzero(axis.punct))
    loop = compiled_rows()
    loop(
        np.require(weights, requirements=("C", "W")),
        kept.astype(np.float32),
        tokens,
        frame.causal,
        np.float32(eps),
        argmax,
        table,
    )
    if not frame.is_self:
        table[3] = 0  # there is no distance between tokens of two texts


@cache
def compiled_rows() -> RowLoop:
    """The compiled loop. Compiled at the first call of a process (two seconds); keeps nothing on disk.

    Lets go of the interpreter's lock. Largest weights and their keys are those that NumPy finds; sums and entropies
    are added in another order, in float32 too.
    """
    import numba

    as_bits, as_float = bit_casts()
    tiny, zero, one, unit = np.float32(np.finfo(np.float32).tiny), np.float32(0), np.float32(1), np.float32(UNIT)
    sqrt_half, exponent_bits = np.float32(math.sqrt(0.5)).view(np.int32), np.int32(-EXPONENT_STEP)
    c0, c1, c2, c3, c4, c5, c6, c7 = (np.float32(term / UNIT) for term in LN)
    minus_zero = np.int32(-(2**31))
    # Sums in another order, multiplications joined to additions; NaN keeps its meaning.
    fast = numba.njit(fastmath={"reassoc", "contract", "nsz"}, inline="never")

    @fast
    def entropies(row: Any, scale: Any, floor: Any) -> Any:
        # ln x = (exponent + f * terms) * unit, as in compiled.py.
        exact = smoothed = zero
        for key in range(row.size):
            x = row[key] + tiny
            bits = as_bits(x)
            exponent = np.int32(np.int32(bits - sqrt_half) & exponent_bits)
            f = as_float(np.int32(bits - exponent)) - one
            terms = ((((((c7 * f + c6) * f + c5) * f + c4) * f + c3) * f + c2) * f + c1) * f + c0
            exact += row[key] * (np.float32(exponent) + f * terms)
            x = row[key] * scale + floor
            bits = as_bits(x)
            exponent = np.int32(np.int32(bits - sqrt_half) & exponent_bits)
            f = as_float(np.int32(bits - exponent)) - one
            terms = ((((((c7 * f + c6) * f + c5) * f + c4) * f + c3) * f + c2) * f + c1) * f + c0
            smoothed += x * (np.float32(exponent) + f * terms)
        return max(-exact * unit, zero) + zero, max(-smoothed * unit, zero) + zero

    @fast
    def sums(row: Any, kept: Any, query: Any) -> Any:
        # The bits of numbers from 0 on are in their order, and their maximum goes by lanes.
        distance = held = zero
        largest_kept = np.int32(0)
        for key in range(row.size):
            own = row[key] * kept[key]
            held += own
            largest_kept = max(largest_kept, as_bits(own))
            distance += row[key] * np.float32(abs(np.int32(key) - np.int32(query)))
        return distance, held, as_float(largest_kept)

    @numba.njit(inline="never")
    def largest(row: Any) -> Any:
        top = negative = np.int32(0)
        for key in range(row.size):
            bits = as_bits(row[key])
            top = max(top, bits)
            negative = np.int32(negative + np.int32(bits < 0 and bits != minus_zero))
        for key in range(row.size):
            if as_bits(row[key]) == top:
                return key, row[key], negative
        return 0, zero, negative

    @numba.njit
    def at(row: Any, keys: Any) -> Any:
        total = zero
        for key in keys:
            if key < row.size:
                total += row[key]
        return total

    def rows(weights: Any, kept: Any, tokens: Any, causal: Any, eps: Any, argmax: Any, table: Any) -> None:
        heads, queries, keys = weights.shape
        cls, sep, punct = tokens
        for head in range(heads):
            for query in range(queries):
                seen = min(query + 1, keys) if causal else keys
                row = weights[head, query, :seen]
                argmax[head, query], top, negative = largest(row)
                exact, smoothed = entropies(row, one - eps, max(eps / np.float32(seen), tiny))
                distance, held, largest_kept = sums(row, kept, query)
                table[0, head, query] = top
                table[1, head, query] = np.float32(np.nan) if negative else exact
                table[2, head, query] = smoothed
                table[3, head, query] = distance
                table[4, head, query] = at(row, cls)
                table[5, head, query] = at(row, sep)
                table[6, head, query] = at(row, punct)
                table[7, head, query] = held
                table[8, head, query] = largest_kept

    floats, numbers = "float32[:, :, ::1]", "int64[::1]"
    signature = (
        f"void({floats}, float32[::1], UniTuple({numbers}, 3), boolean, float32, int32[:, ::1], float32[:, :, ::1])"
    )
    compiled: RowLoop = numba.njit(signature, nogil=True)(rows)
    return compiled
