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
-- Rows that meet lists over heads are few and narrow: a number stands for the relation.
buckets as materialized (
    select relation, n, (row_number() over ())::smallint as bucket, derived
    from totals
),
asked as materialized (
    select b.bucket, a.example, a.word, a.governor
    from arcs as a
    join buckets as b using (relation, derived)
),
predictions as not materialized (
    select a.bucket, a.governor, f.attends_to, f.attended_by
    from asked as a
    join stored.word_facts as f using (example, word)
    where f.kind = $kind
),
bucket_hits as (
    select 'dep_to_head' as direction, p.bucket, h.position, count(*) as correct
    from predictions as p
    join stored.heads as h on p.attends_to[h.position] = p.governor
    where h.kind = $kind
    group by p.bucket, h.position
    union all
    select 'head_to_dep', p.bucket, h.position, count(*)
    from predictions as p
    join stored.heads as h on p.attended_by[h.position] = p.governor
    where h.kind = $kind
    group by p.bucket, h.position
),
hits as (
    select h.layer, h.head, b.relation || ':' || d.direction as feature, coalesce(c.correct, 0) / b.n as value, b.n
    from buckets as b
    cross join stored.heads as h
    cross join (select unnest(['dep_to_head', 'head_to_dep']) as direction) as d
    left join bucket_hits as c
        on c.bucket = b.bucket and c.position = h.position and c.direction = d.direction
    where h.kind = $kind
)
select layer, head, feature, value, n
from (
    select layer, head, feature, value, n, 0 as place from rows
    union all
    select layer, head, feature, value, n, 1 from hits
)
where value is not null
order by layer, head, place, feature
