-- How far the rows of each head's stored maps are from summing to 1.
--
-- Rounding explains up to 0.002 at standard and 0.02 at compact precision. In a store of the largest weights only, the
-- difference is what was not kept.
-- reads:   attention
-- params:  kind text = null, layer integer = null, head integer = null, examples integer = null
-- returns: layer, head, largest_error [of a row sum], mean_error, n [rows]
-- source:  the stored maps
-- paint:   largest_error
with row_sums as (
    select layer, head, sum(weight::double) as total
    from attention
    where
        kind = $kind
        and ($layer is null or layer = $layer)
        and ($head is null or head = $head)
        and ($examples is null or example < $examples)
    group by example, layer, head, query
)
select
    layer, head,
    max(abs(total - 1)) as largest_error,
    avg(abs(total - 1)) as mean_error,
    count(*) as n
from row_sums
group by layer, head
order by layer, head
