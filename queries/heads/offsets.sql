-- The weight that each head puts on the token so many places before or after, on average over the rows that have one.
--
-- Special tokens count. Cross maps have no offsets and no rows here.
-- reads:   offset_facts(reach=$reach)
-- params:  kind text = null, mode text in (macro, micro) = macro, reach integer = 16, layer integer = null,
--          head integer = null
-- returns: layer, head, offset [key - query, tokens], weight [0-1], n [examples that are long enough]
-- source:  distance profiles of heads, after Guan et al. 2020
-- paint:   profile(weight, offset)
with masses as (
    select
        layer, head, n_queries,
        unnest(mass) as mass,
        generate_subscripts(mass, 1) - 1 - $reach as "offset"
    from offset_facts
    where
        kind = $kind
        and ($layer is null or layer = $layer)
        and ($head is null or head = $head)
)
select
    layer, head, "offset",
    case $mode
        when 'macro' then avg(mass / (n_queries - abs("offset")))
        else sum(mass) / sum(n_queries - abs("offset"))
    end as weight,
    count(*) as n
from masses
where n_queries > abs("offset")
group by layer, head, "offset"
order by layer, head, "offset"
