-- The weight that each head puts on the patch so many rows down and columns right, on average over those that have one.
--
-- Tokens without a place on the grid are left out; weights are not renormalised. Cross maps have no rows here.
-- reads:   grid_offset_facts(reach=$reach)
-- needs:   grid
-- params:  kind text = null, mode text in (macro, micro) = macro, reach integer = 3, layer integer = null,
--          head integer = null
-- returns: layer, head, dy [rows, key - query], dx [columns, key - query], weight [0-1],
--          n [examples that have the step]
-- source:  offset profiles on a grid, after Cordonnier et al. 2020
-- paint:   matrix(weight, dy, dx, by=layer)
select
    layer, head, dy, dx,
    case $mode
        when 'macro' then avg(mass / n_queries)
        else sum(mass) / sum(n_queries)
    end as weight,
    count(*) as n
from grid_offset_facts
where
    kind = $kind
    and ($layer is null or layer = $layer)
    and ($head is null or head = $head)
group by layer, head, dy, dx
order by layer, head, dy, dx
