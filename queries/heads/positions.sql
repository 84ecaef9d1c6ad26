-- How much each head attends to the token itself, to the one before and to the one after.
--
-- `strict` divides by the queries that have such a neighbour, `clark` by all of them, as the paper's code does.
-- With `weights = norm` a weight counts times |f(x)|, the length of what the head moves from the key at weight 1, and
-- each row is divided by its sum.
-- reads:   head_facts(weights=$weights)
-- needs:   value_norms if weights=norm
-- params:  kind text = null, mode text in (macro, micro) = macro, compat text in (strict, clark) = strict,
--          weights text in (attention, norm) = attention
-- returns: layer, head, metric [self; previous; next], value [weight, 0-1], n [examples]
-- source:  Clark et al. 2019, section 3.1
-- paint:   value, layers(value, by=metric)
with sums as (
    select
        layer, head,
        unnest(['self', 'previous', 'next']) as metric,
        unnest([self_sum, previous_sum, next_sum]) as total,
        unnest([n_queries, n_queries - offset_rows, n_queries - offset_rows]) as rows
    from head_facts, (select if($compat = 'clark', 0, 1) as offset_rows)
    where kind = $kind
)
select
    layer, head, metric,
    case $mode
        when 'macro' then avg(total / nullif(rows, 0))
        else sum(total) / nullif(sum(rows), 0)
    end as value,
    count(total) as n
from sums
group by layer, head, metric
order by layer, head, list_position(['self', 'previous', 'next'], metric)
