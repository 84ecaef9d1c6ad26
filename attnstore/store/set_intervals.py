"""This file says how far what a set of heads does to a metric hangs on which examples there are."""

import numpy as np
import pyarrow as pa

from attnstore.errors import BadInput
from attnstore.format.fact_tables import MADE
from attnstore.reduce.bootstrap import hashed_draws, paired_interval
from attnstore.store.fact import Reading

SCORES = Reading(
    "paired_scores",
    """
    with places as (
        -- All examples are drawn from, also those that add nothing.
        select example, row_number() over (order by example) - 1 as place, count(*) over () as examples
        from examples
    )
    select
        head_set, metric, any_value(examples) as examples, list(place order by place) as place,
        list(total order by place) as total, list(n::double order by place) as n,
        list(baseline_total order by place) as baseline_total, list(baseline_n::double order by place) as baseline_n
    from paired_scores
    join places using (example)
    where $bootstrap > 0  -- known when DuckDB plans: without a bootstrap none of it runs
    group by head_set, metric
    order by head_set, metric
    """,
)
"""What each example adds to each metric that is a mean, as lists."""


def set_intervals(table: pa.Table, *, bootstrap: int, seed: int) -> pa.Table:
    """The interval of value - baseline for each set of heads and metric; no rows where `bootstrap` is 0.

    All sets and metrics share the draws of the examples. BadInput for a negative bootstrap or seed.
    """
    if bootstrap < 0 or seed < 0:
        raise BadInput("drawing examples anew", f"bootstrap={bootstrap}, seed={seed}", "0 or more")
    rows = []
    if len(table):
        examples = table["examples"][0].as_py()
        times = hashed_draws(examples, bootstrap, seed).astype(np.float64)
        for number in range(len(table)):
            own = {name: np.asarray(table[name][number].values) for name in _LISTS}
            totals, counts = np.zeros((2, 2, examples))
            totals[:, own["place"]] = own["total"], own["baseline_total"]
            counts[:, own["place"]] = own["n"], own["baseline_n"]
            if (interval := paired_interval(times, totals, counts)) is not None:
                low, high = interval
                names = {name: table[name][number].as_py() for name in ("head_set", "metric")}
                rows.append({**names, "delta_low": low, "delta_high": high})
    return pa.Table.from_pylist(rows, schema=MADE["set_intervals"])


_LISTS = ("place", "total", "n", "baseline_total", "baseline_n")
