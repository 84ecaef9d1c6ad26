"""This file compiles the rounding of weights with numba, an optional package, and lends what compiled code needs."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Graded = Callable[[NDArray[np.float32], NDArray[np.uint16]], None]
"""Writes the bits of `standard` codes into its second argument, both C-contiguous with one axis."""


@cache
def is_compiling() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


@cache
def bit_casts() -> tuple[Any, Any]:
    """Functions for compiled code that read a float32 as an int32 and back; numba itself has none."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    def as_bits(typing: Any, number: Any) -> Any:
        return types.int32(types.float32), lambda _, build, __, values: build.bitcast(values[0], ir.IntType(32))

    def as_float(typing: Any, bits: Any) -> Any:
        return types.float32(types.int32), lambda _, build, __, values: build.bitcast(values[0], ir.FloatType())

    return intrinsic(as_bits), intrinsic(as_float)


@cache
def compiled_graded() -> Graded:
    """The rounding of `standard`, compiled: the same bits as NumPy's. Needs numba; keeps nothing on disk."""
    import numba

    as_bits, as_float = bit_casts()
    half, small_from = np.float32(0.5), np.float32(2.0**-14)

    def graded(weights: Any, codes: Any) -> None:
        for index in range(weights.size):
            # The steps are explained where NumPy takes them, in quantise.py. Numba widens sums of int32 to 64 bits; cut
            # back at once, they stay in 32-bit lanes.
            weight = weights[index]
            magic = as_float(np.int32(np.int32(np.int32(as_bits(weight) >> 24) << 23) + np.int32(0x26C00000)))
            value = np.float32(np.float32(weight + magic) - magic)
            bits = np.int32(np.int32(as_bits(value) >> 13) - np.int32(112 << 10))
            small = np.int32(as_bits(np.float32(value + half)) - np.int32(0x3F000000))
            codes[index] = np.uint16(small if value < small_from else bits)

    compiled: Graded = numba.njit("void(float32[::1], uint16[::1])", nogil=True)(graded)
    return compiled
