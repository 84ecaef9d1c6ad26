"""This file holds the one colour scale of every picture, even to the eye and safe for colour-blind readers."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnstore.errors import BadInput

# Viridis at eleven even steps; linear between them it stays within two units of the original per channel.
ANCHORS = (
    (0x44, 0x01, 0x54),
    (0x48, 0x24, 0x75),
    (0x41, 0x44, 0x87),
    (0x35, 0x5F, 0x8D),
    (0x2A, 0x78, 0x8E),
    (0x21, 0x91, 0x8C),
    (0x22, 0xA8, 0x84),
    (0x44, 0xBF, 0x70),
    (0x7A, 0xD1, 0x51),
    (0xBD, 0xDF, 0x26),
    (0xFD, 0xE7, 0x25),
)
# Okabe and Ito's colours without black and yellow, which vanish on one of the two papers, then violet and brown.
KINDS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7b61c4", "#a65628")
GREY = "#999999"
# The part of the scale that stands out from light and from dark paper.
VISIBLE = (0.2, 0.88)


@dataclass(frozen=True, slots=True)
class Scale:
    """From a value to its share of the way between `low` and `high`; both NaN when there is no finite value."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """0 at `low` and below, 1 at `high` and above, NaN for NaN; 0 everywhere when `low` equals `high`."""
        if math.isnan(value) or math.isnan(self.low):
            return math.nan
        if self.high == self.low:
            return 0.0
        part = (value * self.shrink - self.low * self.shrink) / self.span
        return min(max(part, 0.0), 1.0)

    @property
    def shrink(self) -> float:
        """1, or a half where the distance between the ends would overflow."""
        return 0.5 if math.isinf(self.high - self.low) else 1.0

    @property
    def span(self) -> float:
        """The distance between the ends, times `shrink`."""
        return self.high * self.shrink - self.low * self.shrink


def scale(values: NDArray[np.float64]) -> Scale:
    """The scale from the lowest to the highest finite value."""
    finite = values[np.isfinite(values)]
    return Scale(float(finite.min()), float(finite.max())) if finite.size else Scale(math.nan, math.nan)


def rgb(share: float) -> tuple[int, int, int]:
    """The colour at a share from 0 (dark violet) to 1 (yellow), as red, green, blue from 0 to 255."""
    place = min(max(share, 0.0), 1.0) * (len(ANCHORS) - 1)
    left = min(int(place), len(ANCHORS) - 2)
    part = place - left
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(ANCHORS[left], ANCHORS[left + 1], strict=True))
    return red, green, blue


def web(share: float) -> str:
    """The colour as #rrggbb."""
    return "#{:02x}{:02x}{:02x}".format(*rgb(share))


def series(index: int, count: int, *, is_ordered: bool = False) -> str:
    """The colour as #rrggbb of one of `count` series: far apart for kinds, along the scale for an order or many."""
    if count <= len(KINDS) and not is_ordered:
        return KINDS[index]
    low, high = VISIBLE
    return web(low + (high - low) * index / max(count - 1, 1))


def matrix(values: ArrayLike, doing: str, sides: tuple[int | None, int | None] = (None, None)) -> NDArray[np.float64]:
    """The values as float64 [row, column]; raises BadInput for another shape than `sides` says (None: any)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or any(want is not None and have != want for have, want in zip(array.shape, sides, strict=True)):
        wanted = " x ".join("any" if side is None else str(side) for side in sides)
        raise BadInput(doing, f"an array of shape {list(array.shape)}", f"two dimensions, {wanted}")
    return array
