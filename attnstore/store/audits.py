"""This file audits stored maps in SQL: rows that do not sum to 1, largest weights that are not their exact facts.

Each audit decodes every map that it is asked about. The answer is held with the facts that questions compute, as the
maps of a snapshot do not change.
"""

from collections.abc import Mapping

import pyarrow as pa

from attnstore.store.fact import Reading

CHOSEN: Mapping[str, object] = {"kind": None, "layer": None, "head": None, "examples": None}
"""What an audit may be narrowed to; `examples` are the first so many."""

_MAPS = """
        kind = $kind
        and ($layer is null or layer = $layer)
        and ($head is null or head = $head)
        and ($examples is null or example < $examples)
"""

ROW_SUMS = Reading(
    "attention",
    f"""
    select
        $kind as kind, layer, head,
        max(abs(total - 1)) as largest_error, avg(abs(total - 1)) as mean_error, count(*) as n
    from (
        select layer, head, sum(weight::double) as total
        from attention
        where {_MAPS}
        group by example, layer, head, query
    )
    group by layer, head
    """,
)

ROUNDING = Reading(
    "token_facts",
    f"""
    select
        $kind as kind, layer, head,
        max(abs(tops.weight - facts.max))::double as largest_difference,
        avg(abs(tops.weight - facts.max)) as mean_difference,
        count(*) as n
    from (
        select example, layer, head, query as token, max(weight) as weight
        from attention
        where {_MAPS}
        group by example, layer, head, query
    ) as tops
    join token_facts as facts using (example, layer, head, token)
    where facts.kind = $kind
    group by layer, head
    """,
)


def as_read(table: pa.Table, **_: object) -> pa.Table:
    """The rows as the reading gives them."""
    return table
