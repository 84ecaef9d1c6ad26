-- Whether each head parks its attention on one token: the mean weight that a sink gets, and how often it is one.
--
-- The mean is over all queries, in a causal model over those from the token itself on. Where an example has several
-- tokens of a kind, the one that gets most weight in all counts. `share` is the share of examples with a mean above
-- `threshold`. Weights fall with the length of the text: compare texts of one length. In cross maps, sinks are keys.
-- reads:   received_facts, tokens, heads
-- params:  kind text = null, threshold real = 0.3
-- returns: layer, head, sink [first; cls; sep; punct], weight [mean over queries, 0-1], share [of examples, 0-1],
--          n [examples that have such a token]
-- source:  Xiao et al. 2024; Gu et al. 2025 (threshold 0.3)
-- paint:   weight, layers(weight, by=sink)
with places as (
    select
        example, side, token,
        unnest([if(token = 0, 'first', null), if(special in ('cls', 'sep'), special, null), if(punct, 'punct', null)])
            as sink
    from tokens
),
largest as (
    -- The weight in all, not the mean, chooses: few queries come after the last tokens of a causal text.
    select
        r.example, r.layer, r.head, p.sink,
        arg_max(if(h.causal, r.received_later, r.received), {'received': r.received, 'earlier': -r.token}) as weight
    from places as p
    join received_facts as r using (example, side, token)
    join heads as h on h.kind = r.kind and h.layer = r.layer and h.head = r.head
    where r.kind = $kind and p.sink is not null
    group by r.example, r.layer, r.head, p.sink
)
select
    layer, head, sink,
    avg(weight) as weight,
    avg((weight > $threshold)::integer) as share,
    count(*) as n
from largest
group by layer, head, sink
order by layer, head, list_position(['first', 'cls', 'sep', 'punct'], sink)
