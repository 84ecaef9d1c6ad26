-- Whether heads move less from frequent tokens: rank correlation of a token's frequency with the length of what it gives.
--
-- Over the different tokens of the store: their rank by frequency there, 1 for the most frequent, and the mean length
-- |f(x)| of what the head moves from them at weight 1. Positive: frequent tokens give less. Tied ranks are averaged.
-- Null where all ranks are one. Special tokens are left out by default: they are the most frequent of all.
-- reads:   value_norms, tokens, heads
-- needs:   value_norms
-- params:  kind text = null, specials boolean = false, min_count integer = 1
-- returns: layer, head, correlation [Spearman, -1 to 1], n [different tokens]
-- source:  Kobayashi et al. 2020, section 4.3
-- paint:   correlation, layers(correlation)
with occurrences as (
    select example, token, token_id, count(*) over (partition by token_id) as times
    from tokens
    where
        side = (select any_value(keys) from heads where kind = $kind)
        and token_id is not null
        and ($specials or special is null)
),
means as (
    select o.token_id, any_value(o.times) as times, h.position, avg(v.value_norm[h.position]) as length
    from occurrences as o
    join stored.value_norms as v on v.example = o.example and v.token = o.token and v.kind = $kind
    join stored.heads as h on h.kind = v.kind
    where o.times >= $min_count
    group by o.token_id, h.position
),
ranks as (
    select
        position,
        rank() over (partition by position order by times desc)
            + (count(*) over (partition by position, times) - 1) / 2 as by_frequency,
        rank() over (partition by position order by length)
            + (count(*) over (partition by position, length) - 1) / 2 as by_length
    from means
)
select
    h.layer, h.head,
    if(stddev_pop(r.by_frequency) > 0 and stddev_pop(r.by_length) > 0, corr(r.by_frequency, r.by_length), null)
        as correlation,
    count(*) as n
from ranks as r
join stored.heads as h on h.kind = $kind and h.position = r.position
group by h.layer, h.head
order by h.layer, h.head
