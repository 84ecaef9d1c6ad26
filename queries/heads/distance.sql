-- How far each head looks: the distance from query to key in tokens, weighted by attention.
-- reads:   head_facts
-- params:  kind text = null, mode text in (macro, micro) = macro
-- returns: layer, head, distance_tokens, n [examples]
-- source:  mean attention distance, as in Vig and Belinkov 2019
-- paint:   distance_tokens, layers(distance_tokens)
select
    layer, head,
    case $mode
        when 'macro' then avg(distance_sum / n_queries)
        else sum(distance_sum) / sum(n_queries)
    end as distance_tokens,
    count(distance_sum) as n
from head_facts
where kind = $kind
group by layer, head
order by layer, head
