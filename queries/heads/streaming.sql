-- Which heads look at the first and the nearest tokens only, and so could stream, and which retrieve from afar.
--
-- The window is the `first` first tokens and those nearer than `recent`, which are earlier ones in a causal model.
-- Cross maps have no rows here.
-- reads:   streaming_facts(first=$first, recent=$recent)
-- params:  kind text = null, mode text in (macro, micro) = macro, first integer = 4, recent integer = 64,
--          threshold real = 0.95
-- returns: layer, head, weight [on the first and the nearest tokens, 0-1], role [streaming; retrieval], n [examples]
-- source:  Xiao et al. 2024 (StreamingLLM, DuoAttention)
-- paint:   weight, layers(weight), grid(role)
with means as (
    select
        layer, head,
        case $mode
            when 'macro' then avg(mass_sum / n_queries)
            else sum(mass_sum) / sum(n_queries)
        end as weight,
        count(mass_sum) as n
    from streaming_facts
    where kind = $kind
    group by layer, head
)
select layer, head, weight, if(weight >= $threshold, 'streaming', 'retrieval') as role, n
from means
order by layer, head
