-- How far stored weights are from what the model gave: the largest weight of each row against its exact fact.
--
-- The fact was computed before the map was rounded, and is itself rounded to float16: by up to 0.00025 near 1.
-- reads:   attention, token_facts
-- params:  kind text = null, layer integer = null, head integer = null, examples integer = null
-- returns: layer, head, largest_difference [weight, 0-1], mean_difference, n [rows]
-- source:  the stored maps and facts
-- paint:   largest_difference
with tops as (
    select example, layer, head, query as token, max(weight) as weight
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
    max(abs(tops.weight - facts.max))::double as largest_difference,
    avg(abs(tops.weight - facts.max)) as mean_difference,
    count(*) as n
from tops
join token_facts as facts using (example, layer, head, token)
where facts.kind = $kind
group by layer, head
order by layer, head
