"""This file places values along an axis and chooses the round numbers beside it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Axis:
    """From values between `low` and `high` to pixels between `start` and `end`, which may run backwards."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value; the middle of an axis without extent."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (self.end - self.start) * ((value - self.low) / (self.high - self.low))

    def ticks(self, most: int = 6, *, whole: bool = False) -> list[float]:
        """Round numbers on the axis, about `most` of them; `whole` allows only integers."""
        span = self.high - self.low
        if not (span > 0 and math.isfinite(span)):
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next((step * power for step in STEPS if span / (step * power) <= most), 10 * power)
        if whole:
            step = max(1.0, math.ceil(step))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def extent(values: Iterable[float], *, pad: float = 0.0, zero: bool = False) -> tuple[float, float]:
    """The ends of the finite values, wider by a share `pad` of their distance; 0 to 1 for none.

    `zero` includes 0, which is not padded.
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    room = ((high - low) or abs(high)) * pad
    if not zero:
        return low - room, high + room
    if low == high == 0:
        return 0.0, 1.0
    return (low - room if low < 0 else 0.0), (high + room if high > 0 else 0.0)


def tick_text(value: float) -> str:
    """A round number without the digits that floating point adds."""
    return f"{value:.6g}" if value else "0"
