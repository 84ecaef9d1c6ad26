"""This file says how far a difference of two means hangs on which examples there are: a paired bootstrap."""

from hashlib import md5

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def hashed_draws(n: int, resamples: int, seed: int) -> Counts:
    """How often each of `n` items is drawn, with replacement [resample, item]; equal seeds give equal draws.

    The item at a place from 1 is the lower half of the MD5 of seed/resample/place, modulo `n`: so questions draw that
    do it in SQL (md5_number_lower), and no release of a library draws otherwise.
    """
    times = np.zeros((resamples, n), np.int64)
    for resample, own in enumerate(times):
        halves = b"".join(md5(b"%d/%d/%d" % (seed, resample, place)).digest()[8:] for place in range(1, n + 1))
        own += np.bincount((np.frombuffer(halves, "<u8") % n).astype(np.int64), minlength=n)
    return times


def paired_interval(times: Floats, totals: Floats, counts: Floats) -> tuple[float, float] | None:
    """The 2.5 and 97.5 percentiles of value - baseline, over draws of examples `times` [resample, example].

    `totals` and `counts` [2, example] are what each example adds to the numerator and the denominator of value and
    baseline; zeros where it adds nothing. None where no draw has an example that adds something.
    """
    over, under = times @ totals.T, times @ counts.T  # [resample, 2]
    drawn = (under > 0).all(axis=1)
    if not drawn.any():
        return None
    value, baseline = (over[drawn] / under[drawn]).T
    low, high = np.quantile(value - baseline, (0.025, 0.975))
    return float(low), float(high)
