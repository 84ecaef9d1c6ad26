-- What each head does in two stores, side by side.
--
-- Metrics are those of heads/entropy, heads/confidence (with_sep), heads/special, heads/positions and heads/distance.
-- `paired` takes the examples that have a partner in the other store (see compare/pairs), else each store has all of
-- its own. A head that one store lacks has no value there.
-- reads:   a.head_facts(eps=$eps), b.head_facts(eps=$eps), pairs
-- params:  kind text = null, metric text in (entropy, confidence, cls, sep, previous, next, self, distance) = null,
--          mode text in (macro, micro) = macro, eps real = 0.0001, paired boolean = true
-- returns: layer, head, metric [entropy in nats; confidence, cls, sep, previous, next, self as weight; distance in tokens],
--          value_a, value_b, difference [value_b - value_a], n_a [examples], n_b [examples]
-- source:  Song, BERT against ALBERT
-- paint:   grid(difference, by=metric), layers(difference, by=metric)
with metrics as (
    select
        store, layer, head,
        unnest(['entropy', 'confidence', 'cls', 'sep', 'previous', 'next', 'self', 'distance']) as metric,
        unnest([entropy_sum, max_sum, cls_sum, sep_sum, previous_sum, next_sum, self_sum, distance_sum]) as total,
        unnest([
            n_queries, n_queries, n_queries, n_queries, n_queries - 1, n_queries - 1, n_queries, n_queries
        ]) as rows
    from (
        select 'a' as store, * from a.head_facts where not $paired or example in (select example_a from pairs)
        union all
        select 'b', * from b.head_facts where not $paired or example in (select example_b from pairs)
    )
    where kind = $kind
),
means as (
    select
        store, layer, head, metric,
        case $mode
            when 'macro' then avg(total / nullif(rows, 0))
            else sum(total) / nullif(sum(rows), 0)
        end as value,
        count(total) as n
    from metrics
    group by store, layer, head, metric
)
select
    layer, head, metric, a.value as value_a, b.value as value_b, b.value - a.value as difference,
    coalesce(a.n, 0) as n_a, coalesce(b.n, 0) as n_b
from (from means where store = 'a') as a
full join (from means where store = 'b') as b using (layer, head, metric)
where $metric is null or metric = $metric
order by
    list_position(['entropy', 'confidence', 'cls', 'sep', 'previous', 'next', 'self', 'distance'], metric), layer, head
