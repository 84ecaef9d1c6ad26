"""This file correlates two numbers of the same heads, and says how far that hangs on which heads there are."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def draws(n: int, resamples: int, seed: int) -> Counts:
    """How often each of `n` heads is drawn, with replacement [resample, head]; equal seeds give equal draws."""
    drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
    place = (np.arange(resamples)[:, None] * n + drawn).ravel()
    return np.bincount(place, minlength=resamples * n).astype(np.int64).reshape(resamples, n)


def ranks_where_drawn(values: Floats, times: Counts) -> Floats:
    """Ranks from 1 [resample, head] of `values` [head], each head counted so many times; ties share their mean."""
    _, place = np.unique(values, return_inverse=True)
    together = times @ np.eye(place.max() + 1)[place]  # [resample, value]
    middle = np.cumsum(together, axis=1) - (together - 1) / 2
    found: Floats = middle[:, place]
    return found


def correlation(x: Floats, y: Floats, times: Counts) -> Floats:
    """Pearson's coefficient [resample] of `x` and `y` [..., head], each head counted so many times.

    NaN for a constant.
    """
    n, varied = times.sum(axis=1, keepdims=True), _varies(x, times) & _varies(y, times)
    x, y = (values - (times * values).sum(axis=1, keepdims=True) / n for values in (x, y))
    both, one, other = ((times * product).sum(axis=1) for product in (x * y, x * x, y * y))
    found: Floats = np.divide(both, np.sqrt(one * other), out=np.full(len(times), np.nan), where=varied)
    return found.clip(-1, 1)


def _varies(values: Floats, times: Counts) -> NDArray[np.bool_]:
    """Whether the heads that were drawn [resample] have different values; a mean is rounded and cannot tell."""
    there = times > 0
    highest, lowest = np.where(there, values, -np.inf).max(axis=1), np.where(there, values, np.inf).min(axis=1)
    found: NDArray[np.bool_] = highest > lowest
    return found


def spearman(x: Floats, y: Floats, times: Counts) -> Floats:
    """Spearman's coefficient [resample] of `x` and `y` [head], each head counted so many times; NaN for a constant."""
    return correlation(ranks_where_drawn(x, times), ranks_where_drawn(y, times), times)
