-- How much the loss depends on each head, to first order: the derivative by a gate on the head's output.
--
-- A positive `importance_signed` says that a little less of the head would lower the loss. `importance` is the mean of
-- the absolute value of an example, as the paper defines it; `importance_by_token` takes the absolute value at every
-- token and the mean over tokens, as the paper's code does (which divides the last layer by examples instead).
-- `normalise=layer` divides each column by its length over the heads of a layer, as that code does. Gradients are of one
-- example at a time, so that no number depends on the batch.
-- needs:   importance_facts
-- reads:   importance_facts
-- params:  kind text = null, normalise text in (none, layer) = none
-- returns: layer, head, importance_signed, importance, importance_by_token, rank [1 has the largest importance],
--          n [examples], not_finite [examples]
-- source:  Michel et al. 2019, section 4.1
-- paint:   importance, layers(importance), importance_signed
with means as (
    select
        layer, head, avg(importance) as signed, avg(abs(importance)) as absolute,
        sum(importance_abs_tokens) / nullif(sum(n_tokens) filter (importance is not null), 0) as by_token,
        count(importance) as n, count(*) - count(importance) as not_finite
    from importance_facts
    where kind = $kind
    group by layer, head
),
lengths as (
    select
        layer, nullif(sqrt(sum(signed ** 2)), 0) as signed, nullif(sqrt(sum(absolute ** 2)), 0) as absolute,
        nullif(sqrt(sum(by_token ** 2)), 0) as by_token
    from means
    group by layer
),
scaled as (
    select
        m.layer, m.head, m.signed / if($normalise = 'layer', l.signed, 1) as importance_signed,
        m.absolute / if($normalise = 'layer', l.absolute, 1) as importance,
        m.by_token / if($normalise = 'layer', l.by_token, 1) as importance_by_token, m.n, m.not_finite
    from means as m
    join lengths as l using (layer)
)
select
    layer, head, importance_signed, importance, importance_by_token,
    if(importance is null, null, rank() over (order by importance desc nulls last)) as rank, n, not_finite
from scaled
order by layer, head
