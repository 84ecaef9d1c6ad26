"""This file compares groups by the ranks of their values, and counts false discoveries."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def ranks(values: Floats) -> Floats:
    """Ranks from 1 along the last axis, ties sharing their mean."""
    flat = values.reshape(-1, values.shape[-1])
    found = np.empty(flat.shape)
    for row, own in zip(found, flat, strict=True):
        _, place, counts = np.unique(own, return_inverse=True, return_counts=True)
        row[:] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return found.reshape(values.shape)


def eta_squared(values: Floats, member: Bools) -> Floats:
    """The share [...] of the variance of `values` [..., example] between groups `member` [group, example].

    NaN where all values are alike.
    """
    centred = values - values.mean(axis=-1, keepdims=True)
    # A constant leaves the rounding error of its mean.
    found: Floats = np.full(values.shape[:-1], np.nan)
    np.divide(_between(centred, member), (centred**2).sum(axis=-1), out=found, where=np.ptp(values, axis=-1) > 0)
    return found


def kruskal(ranked: Floats, member: Bools) -> Floats:
    """Kruskal-Wallis' H [...], corrected for ties, of `ranked` [..., example] in groups `member` [group, example].

    NaN where all values are alike.
    """
    h: Floats = (ranked.shape[-1] - 1) * eta_squared(ranked, member)
    return h


def permuted(ranked: Floats, member: Bools, draw: np.random.Generator, permutations: int) -> Floats:
    """The p [...] of Kruskal-Wallis' H: the share of shuffled labels that give as large a one, the given ones counted.

    `ranked` [..., example], `member` [group, example]; NaN where all values are alike.
    """
    centred = ranked - (ranked.shape[-1] + 1) / 2
    given = _between(centred, member) * (1 - 1e-12)  # sums in another order
    reached = np.ones(given.shape)
    for _ in range(permutations):
        reached += _between(centred, member[:, draw.permutation(member.shape[1])]) >= given
    p: Floats = np.where(np.ptp(ranked, axis=-1) > 0, reached / (permutations + 1), np.nan)
    return p


def _between(centred: Floats, member: Bools) -> Floats:
    """The squared deviations [...] between groups."""
    sums = centred @ member.T.astype(np.float64)
    squares: Floats = (sums**2 / member.sum(axis=1)).sum(axis=-1)
    return squares


def auroc(ranked: Floats, member: Bools) -> Floats:
    """The area under the ROC curve [..., group]: how often one of the group has the larger value than one outside.

    `ranked` [..., example] are ranks, `member` [group, example]. NaN for a group of none or of all.
    """
    inside = member.sum(axis=1)
    outside = ranked.shape[-1] - inside
    wins = ranked @ member.T.astype(np.float64) - inside * (inside + 1) / 2
    found: Floats = np.full(wins.shape, np.nan)
    np.divide(wins, inside * outside, out=found, where=np.broadcast_to(inside * outside > 0, wins.shape))
    return found


def false_discovery(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p [test]; NaN stays, and is no test."""
    found = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(-p[known], kind="stable")]
    scaled = p[order] * len(order) / np.arange(len(order), 0, -1)
    found[order] = np.minimum(np.minimum.accumulate(scaled), 1)
    return found
