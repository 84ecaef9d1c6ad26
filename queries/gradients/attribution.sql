-- How much of a class's logit the edges of each head account for: integrated gradients over one layer's weights.
--
-- `score` is the largest attribution of an edge, averaged over examples; `share` what all edges of the head add up to.
-- The logit is that of the true class, or of the predicted one without a label. The attributions of all heads of a layer
-- add up to `layer_change`, the logit less that with the layer's maps at 0; `missing` is how far they are off on
-- average, which more steps along the path would lower.
-- needs:   attribution_facts
-- reads:   attribution_facts
-- params:  kind text = null
-- returns: layer, head, score [logits], share [logits], layer_change [logits], missing [logits],
--          rank [1 has the largest score], n [examples], not_finite [examples]
-- source:  Hao et al. 2021, sections 3.2 and 5.1
-- paint:   score, layers(score), share
with layers as (
    select layer, avg(change) as layer_change, avg(abs(total - change)) as missing
    from (
        select example, layer, any_value(change) as change, sum("sum") as total
        from attribution_facts
        where kind = $kind
        group by example, layer
    )
    group by layer
),
means as (
    select
        layer, head, avg("max") as score, avg("sum") as share, count("max") as n, count(*) - count("max") as not_finite
    from attribution_facts
    where kind = $kind
    group by layer, head
)
select
    m.layer, m.head, m.score, m.share, l.layer_change, l.missing,
    if(m.score is null, null, rank() over (order by m.score desc nulls last)) as rank, m.n, m.not_finite
from means as m
join layers as l using (layer)
order by m.layer, m.head
