"""This file holds two numbers of every head against each other: do heads with much of one have much of the other?"""

from functools import cache, partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.fact_tables import MADE
from attnstore.reduce.correlations import correlation, draws, spearman
from attnstore.store.fact import Reading

NUMBERS = Reading(
    "head_facts",
    """
    select kind, number, layer, head, value
    from head_numbers
    where isfinite(value)
    order by kind, number, layer, head
    """,
)
"""Every number of every head."""


def head_correlations(table: pa.Table, *, x: str, y: str | None, bootstrap: int, seed: int) -> pa.Table:
    """Spearman's and Pearson's coefficient of `x` and each other number, or `y`, over the heads that have both.

    `low` and `high` are the 2.5 and 97.5 percentiles of Spearman's over `bootstrap` draws of the heads; null for none.
    BadInput for a negative bootstrap or seed.
    """
    if bootstrap < 0 or seed < 0:
        raise BadInput("correlating heads", f"bootstrap={bootstrap}, seed={seed}", "0 or more")
    found: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    for row in table.to_pylist():
        found.setdefault((row["kind"], row["number"]), {})[row["layer"], row["head"]] = row["value"]
    rows, times = [], cache(partial(draws, resamples=bootstrap, seed=seed))
    for (kind, number), values in found.items():
        others = found.get((kind, x), {})
        heads = sorted(values.keys() & others.keys())
        if heads and (number == y or (y is None and number != x)):
            one, other = (np.array([own[head] for head in heads]) for own in (others, values))
            rows.append({"kind": kind, "x": x, "y": number, "n": len(heads), **_pair(one, other, times(len(heads)))})
    return pa.Table.from_pylist(rows, schema=MADE["head_correlations"])


def _pair(x: NDArray[np.float64], y: NDArray[np.float64], times: NDArray[np.int64]) -> dict[str, float | None]:
    whole = np.ones((1, len(x)), np.int64)
    rank, plain = spearman(x, y, whole)[0], correlation(x, y, whole)[0]
    drawn = spearman(x, y, times)
    there = drawn[np.isfinite(drawn)]
    low, high = np.quantile(there, (0.025, 0.975)) if len(there) else (np.nan, np.nan)
    numbers = {"spearman": rank, "low": low, "high": high, "pearson": plain}
    return {name: float(value) if np.isfinite(value) else None for name, value in numbers.items()}
