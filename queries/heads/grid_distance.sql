-- How far each head looks on the grid of an image: the distance from patch to patch, weighted by attention.
--
-- Tokens without a place on the grid ([CLS], registers) are left out as queries and as keys. What a patch gives to them
-- counts as no distance, as in the usual code; with `renormalise` a row is divided by its weight on patches first.
-- Codes have no size, so that their distance is in steps of the grid. Cross maps have no rows here.
-- reads:   grid_facts, examples
-- needs:   grid
-- params:  kind text = null, mode text in (macro, micro) = macro, renormalise boolean = false
-- returns: layer, head, distance [from centre to centre], unit [pixels; steps], n [examples]
-- source:  mean attention distance, Dosovitskiy et al. 2021; Raghu et al. 2021
-- paint:   distance, layers(distance)
with sums as (
    select
        f.layer, f.head, f.n_queries,
        if($renormalise, f.distance_renormalised_sum, f.distance_sum) as distance_sum,
        if(e.patch_height is null, 'steps', 'pixels') as unit
    from grid_facts as f
    join examples as e using (example)
    where f.kind = $kind and f.n_queries > 0
)
select
    layer, head,
    case $mode
        when 'macro' then avg(distance_sum / n_queries)
        else sum(distance_sum) / sum(n_queries)
    end as distance,
    unit,
    count(*) as n
from sums
group by layer, head, unit
order by layer, head, unit
