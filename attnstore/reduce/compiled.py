"""This file compiles the inner loop of the divergences between all heads with numba, an optional package."""

import math
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnstore.format.compiled import bit_casts
from attnstore.reduce.axes import FloatArray

PairSums = Callable[[FloatArray, NDArray[np.float64]], None]
"""Adds to its second argument [head, head], for heads a <= b of its first, `halves` [head, cell], the sum over cells
of x ln x with x = halves[a] + halves[b]."""

LN = (0.999999814, -0.500006674, 0.333361818, -0.249593423, 0.198730508, -0.173334863, 0.164199643, -0.101021422)
"""ln(1 + f) = f * (LN[0] + LN[1] * f + ...) within 3.5e-8 for 1 + f between sqrt(1/2) and sqrt(2); exact at f = 0, so
that powers of 2 have exact logarithms. Float32 has steps of 6e-8 there: one term more changes nothing."""

EXPONENT_STEP = 1 << 23  # a float32 has 23 bits below its exponent
UNIT = math.log(2) / EXPONENT_STEP
"""What one in the bits of a float32 is in nats, counted as its exponent is."""


@cache
def compiled_pair_sums() -> PairSums | None:
    """The compiled loop, for C-contiguous float32 halves of normal numbers; None where numba is not installed.

    Imports numba and compiles at the first call of a process (under a second together); keeps nothing on disk. One
    thread; lets go of the interpreter's lock.
    """
    if find_spec("numba") is None:
        return None
    import numba

    as_bits, as_float = bit_casts()
    sqrt_half = np.float32(math.sqrt(0.5)).view(np.int32)
    exponent_bits, one = np.int32(-EXPONENT_STEP), np.float32(1)
    # In the unit in which the bits count the exponent: one multiplication less.
    c0, c1, c2, c3, c4, c5, c6, c7 = (np.float32(term / UNIT) for term in LN)

    def sum_x_ln_x(a: Any, b: Any) -> Any:
        total = np.float32(0)
        for cell in range(a.size):
            x = a[cell] + b[cell]
            # x = 2^n (1 + f). Numba widens every sum of int32 to 64 bits; cut back at once, it stays in 32-bit lanes.
            bits = as_bits(x)
            exponent = np.int32(np.int32(bits - sqrt_half) & exponent_bits)
            f = as_float(np.int32(bits - exponent)) - one
            terms = ((((((c7 * f + c6) * f + c5) * f + c4) * f + c3) * f + c2) * f + c1) * f + c0
            total += x * (np.float32(exponent) + f * terms)
        return total

    # Sums in another order, multiplications joined to additions; NaN keeps its meaning.
    row_sum = numba.njit(sum_x_ln_x, fastmath={"reassoc", "contract", "nsz"})

    def pair_sums(halves: Any, sums: Any) -> None:
        for a in range(len(halves)):
            for b in range(a, len(halves)):
                sums[a, b] += row_sum(halves[a], halves[b]) * UNIT

    compiled: PairSums = numba.njit("void(float32[:, ::1], float64[:, ::1])", nogil=True)(pair_sums)
    return compiled
