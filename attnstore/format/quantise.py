"""This file turns float32 weights into stored codes and back, with the error that this can introduce."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.compiled import compiled_graded, is_compiling

Floats = NDArray[np.float32]
Codes = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Precision:
    """One way to store weights.

    `encode` maps float32 weights in 0-1 to codes of `dtype`, `decode` maps codes back to float32;
    `half_step(codes)` is the largest error of each single weight; `fill` reads where nothing was stored.
    """

    name: str
    dtype: str
    fill: float
    formula: str
    encode: Callable[[Floats], Codes]
    decode: Callable[[Codes], Floats]
    half_step: Callable[[Codes], Floats]

    @property
    def itemsize(self) -> int:
        """Bytes of one code before compression."""
        return np.dtype(self.dtype).itemsize


_BLOCK = 1 << 16
"""Weights that are rounded at a time: what lies between the steps stays in the processor's cache (2.2 ns a weight; 5.4
in blocks of a megabyte)."""

_MAGIC = (77 << 23) | 0x400000
"""77 = -63 - 10 + 23 + 127: half of frexp's bias for the exponent, 10 for the step, the bits of a fraction, float32's
bias. The lower bits are those of 1.5."""


def _graded(weights: Floats) -> Codes:
    flat = np.ascontiguousarray(weights, np.float32).reshape(-1)
    codes = np.empty(flat.size, np.uint16)
    bits, value = np.empty(min(_BLOCK, flat.size), np.int32), np.empty(min(_BLOCK, flat.size), np.float32)
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        codes[start : start + _BLOCK] = _graded_block(part, bits[: part.size], value[: part.size])
    return codes.view(np.float16).reshape(weights.shape)


def _graded_block(weights: Floats, bits: NDArray[np.int32], value: Floats) -> NDArray[np.int32]:
    # step = 2^(floor(e/2) - 10), e the exponent that frexp gives. Adding and subtracting
    # 1.5 * 2^23 * step rounds to the nearest multiple of the step (ties to even) in float32.
    np.right_shift(weights.view(np.int32), 24, out=bits)
    np.left_shift(bits, 23, out=bits)
    np.add(bits, _MAGIC, out=bits)
    magic = bits.view(np.float32)
    np.add(weights, magic, out=value)
    np.subtract(value, magic, out=value)
    return _halves(value, bits)


def _halves(value: Floats, bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """The bits as float16 of `value`, each a float16 number in 0-1; both are overwritten.

    NumPy's own cast is slow on numbers below 2^-14.
    """
    np.right_shift(value.view(np.int32), 13, out=bits)
    np.subtract(bits, 112 << 10, out=bits)  # the bias of the exponent: 127 - 15
    # Below 2^-14 a half counts steps of 2^-24, which are the last bits of a float in 0.5-1.
    is_small = value < np.float32(2.0**-14)
    np.add(value, np.float32(0.5), out=value)
    np.copyto(bits, value.view(np.int32) - 0x3F000000, where=is_small)
    return bits


def _compiled_graded(weights: Floats) -> Codes:
    flat = np.ascontiguousarray(weights, np.float32).reshape(-1)
    codes = np.empty(flat.size, np.uint16)
    compiled_graded()(flat, codes)
    return codes.view(np.float16).reshape(weights.shape)


def _graded_half_step(codes: Codes) -> Floats:
    # Rounding never lowers the exponent, but to 0: weights up to 2^-21 end there (their step is
    # 2^-20). Where it raised the exponent, the step of the code is the larger one.
    _, exponent = np.frexp(codes.astype(np.float32))
    half = np.ldexp(np.float32(1.0), (exponent >> 1) - 11)
    return np.where(codes == 0, np.float32(2.0**-21), half).astype(np.float32)


_SQUARES = (np.arange(256, dtype=np.float32) / np.float32(255)) ** 2


def _square_root(weights: Floats) -> Codes:
    return np.rint(np.sqrt(weights) * np.float32(255)).astype(np.uint8)


def _square_root_half_step(codes: Codes) -> Floats:
    # |sqrt(w) - c/255| <= 1/510, hence |w - (c/255)^2| <= (c/255)/255 + 1/510^2.
    return (codes.astype(np.float32) / np.float32(255**2) + np.float32(1 / 510**2)).astype(np.float32)


def _same(weights: Floats) -> Codes:
    return np.asarray(weights, np.float32)


def _as_floats(codes: Codes) -> Floats:
    return np.asarray(codes, np.float32)


def _no_step(codes: Codes) -> Floats:
    return np.zeros(codes.shape, np.float32)


PRECISIONS: dict[str, Precision] = {
    "standard": Precision(
        "standard",
        "float16",
        float("nan"),
        "weight = value; rounded to a multiple of 2^(floor(e/2)-10), e the exponent of frexp",
        _graded,
        lambda codes: codes.astype(np.float32),
        _graded_half_step,
    ),
    "exact": Precision("exact", "float32", float("nan"), "weight = value", _same, _as_floats, _no_step),
    "compact": Precision(
        "compact",
        "uint8",
        255,
        "weight = (value / 255)^2",
        _square_root,
        lambda codes: np.take(_SQUARES, codes.astype(np.intp)),
        _square_root_half_step,
    ),
}
"""The three precisions of a recipe's `[keep] precision`."""


def encoder(precision: Precision, *, compiled: bool = False) -> Callable[[Floats], Codes]:
    """How weights become codes: by NumPy, or where `compiled` and numba is there by the same steps in one loop.

    The codes are the same to the bit.
    """
    if not (compiled and precision.name == "standard" and is_compiling()):
        return precision.encode
    compiled_graded()  # now, and not while a layer is held
    return _compiled_graded


def checked_weights(weights: Floats, doing: str) -> Floats:
    """`weights`, if every one is a number in 0-1; BadInput otherwise."""
    low, high = float(weights.min(initial=0.0)), float(weights.max(initial=0.0))
    if not (low >= 0.0 and high <= 1.0 + 1e-4):  # NaN fails both
        raise BadInput(doing, f"weights from {low:g} to {high:g}", "numbers in 0-1, none of them NaN")
    return np.minimum(weights, np.float32(1.0)) if high > 1.0 else weights
