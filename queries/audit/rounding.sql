-- How far stored weights are from what the model gave: the largest weight of each row against its exact fact.
--
-- The fact was computed before the map was rounded, and is itself rounded to float16 (half a thousandth of its value).
-- reads:   attention, token_facts
-- params:  kind text = null, layer integer = null, head integer = null, examples integer = null
-- returns: layer, head, largest_difference [weight, 0-1], mean_difference, n [rows]
-- source:  the stored maps and facts
-- paint:   largest_difference
select
    layer, head,
    max(abs(a.weight - f.max)) as largest_difference,
    avg(abs(a.weight - f.max)) as mean_difference,
    count(*) as n
from attention as a
join token_facts as f using (example, kind, layer, head)
where
    kind = $kind
    and f.token = a.query
    and f.argmax = a.key
    and ($layer is null or layer = $layer)
    and ($head is null or head = $head)
    and ($examples is null or example < $examples)
group by layer, head
order by layer, head
