-- How much of every head's weight a store of the largest weights (topk:N) holds, measured before rounding.
--
-- Null in a store that keeps whole maps, where nothing is left out, and for heads that were not kept. Facts do not
-- depend on it: they were computed from the whole maps.
-- reads:   heads, kept_facts
-- params:  kind text = null
-- returns: layer, head, kept [share of the weight, 0-1], most_cut [weight of a row, 0-1],
--   largest_cut [a single weight, 0-1], n [rows]
-- source:  the store's own tables
-- paint:   kept
select
    h.layer, h.head,
    sum(f.kept_sum) / nullif(sum(f.kept_sum + f.rest_sum), 0) as kept,
    max(f.rest_max) as most_cut,
    max(f.largest_cut) as largest_cut,
    coalesce(sum(f.n_queries), 0)::bigint as n
from heads as h
left join kept_facts as f using (kind, layer, head)
where h.kind = $kind
group by h.layer, h.head
order by h.layer, h.head
