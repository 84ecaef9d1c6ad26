-- One row for each head and feature, for a clustering of your own: what its rows do, and which relations it follows.
--
-- What the rows do: weights and entropy (smoothed) as in heads/positions, heads/special, heads/entropy and
-- heads/confidence. Relations of at least `min_count` dependents give two features each, their accuracies as in
-- relations/accuracy; a store without parses has none.
-- reads:   head_facts(eps=0.0001), word_facts(pieces=mean), relations, heads
-- params:  kind text = null, min_count integer = 100
-- returns: layer, head, feature, value, n [examples, or dependents of the relation]
-- source:  inputs of clustering after Clark et al. 2019, sections 3, 4.2 and 6
-- paint:   value
with rows as (
    select
        layer, head, n,
        unnest(['self', 'next', 'previous', 'cls', 'sep', 'punct', 'entropy_nats', 'distance_tokens', 'confidence'])
            as feature,
        unnest([self, next, previous, cls, sep, punct, entropy_nats, distance_tokens, confidence]) as value
    from head_means
    where kind = $kind
),
arcs as materialized (
    select example, word, governor, deprel as relation, derived
    from relations
    where side = (select any_value(queries) from heads where kind = $kind) and governor is not null and $kind <> 'cross'
),
totals as (
    select relation, derived, count(*) as n
    from arcs
    group by relation, derived
    having count(*) >= $min_count
),
-- A word's list over heads is taken before it meets the heads: afterwards it would be taken once a head.
predictions as (
    select a.relation, a.derived, a.governor, f.attends_to, f.attended_by
    from arcs as a
    join stored.word_facts as f using (example, word)
    where f.kind = $kind
),
hits as (
    select
        t.relation, t.n, h.layer, h.head,
        count(*) filter (p.attends_to[h.position] = p.governor) as dep_to_head,
        count(*) filter (p.attended_by[h.position] = p.governor) as head_to_dep
    from totals as t
    join predictions as p using (relation, derived)
    cross join stored.heads as h
    where h.kind = $kind
    group by t.relation, t.n, h.layer, h.head
)
select layer, head, feature, value, n
from (
    select layer, head, feature, value, n, 0 as place from rows
    union all
    select
        layer, head,
        relation || ':' || unnest(['dep_to_head', 'head_to_dep']) as feature,
        unnest([dep_to_head, head_to_dep]) / n as value,
        n, 1
    from hits
)
where value is not null
order by layer, head, place, feature
