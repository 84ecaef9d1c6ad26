"""This file turns float32 weights into stored codes and back, with the error that this can introduce."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput

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


def _graded(weights: Floats) -> Codes:
    # step = 2^(floor(e/2) - 10), e the exponent that frexp gives. Adding and subtracting
    # 1.5 * 2^23 * step rounds to the nearest multiple of the step (ties to even) in float32.
    weights = np.ascontiguousarray(weights, np.float32)
    exponent = (weights.view(np.int32) >> 23) - 126
    exponent >>= 1
    exponent += 140  # - 10 for the step, + 23 for the fraction, + 127 for the bias
    exponent <<= 23
    exponent |= 0x400000
    magic = exponent.view(np.float32)
    return _halves((weights + magic) - magic)


def _halves(values: Floats) -> Codes:
    """`values`, each a float16 number in 0-1, as float16: NumPy's own cast is slow on those below 2^-14."""
    bits = values.view(np.int32) >> 13
    bits -= 112 << 10  # the bias of the exponent: 127 - 15
    # Below 2^-14 a half counts steps of 2^-24, which are the last bits of a float in 0.5-1.
    small = (values + np.float32(0.5)).view(np.int32)
    small -= 0x3F000000
    np.copyto(bits, small, where=values < np.float32(2.0**-14))
    return bits.astype(np.uint16).view(np.float16)


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


def checked_weights(weights: Floats, doing: str) -> Floats:
    """`weights`, if every one is a number in 0-1; BadInput otherwise."""
    low, high = float(weights.min(initial=0.0)), float(weights.max(initial=0.0))
    if not (low >= 0.0 and high <= 1.0 + 1e-4):  # NaN fails both
        raise BadInput(doing, f"weights from {low:g} to {high:g}", "numbers in 0-1, none of them NaN")
    return np.minimum(weights, np.float32(1.0)) if high > 1.0 else weights
