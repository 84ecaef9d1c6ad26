"""This file sums the rows of every head, so that averages over any selection of examples follow without maps."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.rows import STATISTICS, Drop, Rows, kept_tokens, row_statistics

HeadFacts = dict[str, NDArray[np.float64]]

_SELECTORS = ("all", "cls", "sep", "rest", "kept", "per_log")
"""Factors of the rows in a sum: 1 for every query; 1 for [CLS], [SEP], other than [SEP], not dropped, and 0
elsewhere; 1 / ln(visible keys)."""

_SUMS = {
    # column of HEAD_FACTS: (statistic of a row, factors of the rows)
    "cls_sum": ("cls", "all"),
    "sep_sum": ("sep", "all"),
    "punct_sum": ("punct", "all"),
    "sep_sep_sum": ("sep", "sep"),
    "rest_sep_sum": ("sep", "rest"),
    "distance_sum": ("distance", "all"),
    "entropy_sum": ("smoothed", "all"),
    "entropy_exact_sum": ("entropy", "all"),
    "entropy_normalised_sum": ("entropy", "per_log"),
    "cls_entropy_sum": ("smoothed", "cls"),
    "cls_entropy_exact_sum": ("entropy", "cls"),
    "max_sum": ("max", "all"),
    "max_drop_keys_sum": ("max_kept", "all"),
    "max_drop_both_sum": ("max_kept", "kept"),
    "max_drop_renormalised_sum": ("renormalised", "all"),
}

_OFFSETS = {"self_sum": 0, "next_sum": 1, "previous_sum": -1}

COLUMNS = (
    *("n_queries", "n_keys", "n_cls", "n_sep", "self_sum", "next_sum", "previous_sum"),
    *("cls_sum", "sep_sum", "punct_sum", "sep_sep_sum", "rest_sep_sum", "distance_sum"),
    *("entropy_sum", "entropy_exact_sum", "entropy_normalised_sum", "n_normalised", "log_keys_sum"),
    *("cls_entropy_sum", "cls_entropy_exact_sum"),
    *("max_sum", "max_drop_keys_sum", "max_drop_both_sum", "n_drop_both", "max_drop_renormalised_sum"),
)
"""The columns of HEAD_FACTS after its keys, in that table's order."""

# Where the sums go, and which product of (statistic, selector) each one is.
_SUM_COLUMN = np.array([COLUMNS.index(column) for column in _SUMS])
_STATISTIC = np.array([STATISTICS.index(statistic) for statistic, _ in _SUMS.values()])
_SELECTOR = np.array([_SELECTORS.index(selector) for _, selector in _SUMS.values()])


def head_facts(weights: FloatArray, frame: Frame, *, eps: float = 1e-4, drop: Drop = "sep") -> HeadFacts:
    """The columns of HEAD_FACTS after its keys, each float64 [head], of `weights` [head, query, key].

    Sums over query tokens of weights (0-1), nats or tokens, and the counts that they are divided by; special
    tokens and the diagonal are included (Clark et al. 2019, sections 3.1 to 3.3). Smoothed entropy is that of
    (1 - eps) * weight + eps / T, T the keys that a row sees: all of them, or in a causal frame those up to
    itself. The `max_drop_*` columns leave out [SEP] (`drop="sep"`) or every special token (`"special"`); a row
    without weight on the kept keys counts 0 in the renormalised one. NaN where a column is not defined: offsets
    in a cross map. Weights on keys that a causal row cannot see must be 0.
    """
    return sum_rows(weights, frame, row_statistics(weights, frame, eps=eps, drop=drop), drop=drop)


def sum_rows(weights: FloatArray, frame: Frame, rows: Rows, *, drop: Drop) -> HeadFacts:
    """What `head_facts` returns, from the row statistics of the same map with the same `drop`."""
    n_heads, n_queries, n_keys = weights.shape
    axis = frame.queries
    visible = np.arange(1, n_queries + 1) if frame.causal else np.full(n_queries, n_keys)
    log_keys = np.log(visible)
    wide = visible > 1
    kept = kept_tokens(axis, drop)
    per_log = np.divide(1, log_keys, out=np.zeros(n_queries), where=wide)
    factors = np.stack([np.ones(n_queries), axis.cls, axis.sep, ~axis.sep, kept, per_log], axis=1)
    # In float64 from here on: one product gives every sum, [statistic, head, selector].
    sums = rows.table.astype(np.float64) @ factors
    table = np.full((len(COLUMNS), n_heads), np.nan)
    table[_SUM_COLUMN] = sums[_STATISTIC, :, _SELECTOR]
    facts: HeadFacts = dict(zip(COLUMNS, table, strict=True))
    facts["n_queries"][:], facts["n_keys"][:] = n_queries, n_keys
    facts["n_cls"][:], facts["n_sep"][:] = np.count_nonzero(axis.cls), np.count_nonzero(axis.sep)
    facts["n_normalised"][:], facts["log_keys_sum"][:] = np.count_nonzero(wide), log_keys.sum()
    facts["n_drop_both"][:] = np.count_nonzero(kept)
    if frame.is_self:
        for column, offset in _OFFSETS.items():
            weights.diagonal(offset, 1, 2).sum(axis=-1, dtype=np.float64, out=facts[column])
    else:
        facts["distance_sum"][:] = np.nan
    return facts
