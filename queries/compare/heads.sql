-- What each head does in two stores, side by side.
--
-- Metrics are those of heads/entropy, heads/confidence (with_sep), heads/special, heads/positions and heads/distance.
-- `paired` takes the examples that have a partner in the other store (see compare/pairs), else each store has all of
-- its own. A head that one store lacks has no value there. Models that have not as many layers and heads are refused,
-- since no head of one stands for one of the other; compare/summary has their means.
-- reads:   a.head_facts(eps=$eps), b.head_facts(eps=$eps), pairs
-- params:  kind text = null, metric text in (entropy, confidence, cls, sep, previous, next, self, distance) = null,
--          mode text in (macro, micro) = macro, eps real = 0.0001, paired boolean = true
-- returns: layer, head, metric [entropy in nats; confidence, cls, sep, previous, next, self as weight; distance in tokens],
--          value_a, value_b, difference [value_b - value_a], n_a [examples], n_b [examples]
-- source:  Song, BERT against ALBERT
-- paint:   grid(difference, by=metric), layers(difference, by=metric)
with means as (
    select
        store, layer, head, metric,
        case $mode
            when 'macro' then avg(total / nullif(n_rows, 0))
            else sum(total) / nullif(sum(n_rows), 0)
        end as value,
        count(total) as n
    from (
        select 'a' as store, * from a.head_metrics where not $paired or example in (select example_a from pairs)
        union all
        select 'b', * from b.head_metrics where not $paired or example in (select example_b from pairs)
    )
    where kind = $kind
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
