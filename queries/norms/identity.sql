-- Whether a position still means its token: how like its state is to what it was at first, layer by layer.
--
-- `accuracy` is the share of tokens that are most like their own first state among those of all tokens of the example,
-- by cosine, special tokens included. State 0 is what the first layer takes in, state n what layer n - 1 hands on; the
-- last is taken before a model's last norm. Where the accuracy is low, read the weights of that layer as going between
-- positions rather than between words. Equal tokens of a model without positions are a tie, which the first wins.
-- reads:   identity_facts
-- needs:   identity_facts
-- params:  kind text = null
-- returns: state [0: before the first layer], cosine [mean], accuracy [0-1], chance [0-1],
--          hidden_norm [mean length], n [tokens]
-- source:  Brunner et al. 2020, section 4 (token identifiability)
-- paint:   bars(accuracy, chance, by=state), bars(cosine, by=state)
with sizes as (
    select example, 1 / count(distinct token) as chance
    from identity_facts
    where kind = $kind
    group by example
)
select
    f.state, avg(f.cosine) as cosine, avg((f.nearest = f.token)::integer) as accuracy, avg(s.chance) as chance,
    avg(f.hidden_norm) as hidden_norm, count(f.cosine) as n
from identity_facts as f
join sizes as s using (example)
where f.kind = $kind
group by f.state
order by f.state
