-- How well two stores' best heads know each relation, and which dependents only one of them gets right.
--
-- Heads and directions are chosen in each store as relations/best does, on the words that they are scored on. Scored
-- are the dependents that stand in both stores with the same governor and relation, in pairs of examples with equal
-- words (see compare/pairs). `gained` are those that only B's best head gets right, `lost` those that only A's does; a
-- noun below two adpositions is two dependents of pobj.
-- reads:   pairs, a.relations, b.relations, a.heads, b.heads, a.word_facts(pieces=$pieces), b.word_facts(pieces=$pieces)
-- needs:   relations
-- params:  kind text = null, relation text = null, deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all, derived boolean = true,
--          pieces text in (mean, first, max) = mean, min_count integer = 1
-- returns: relation, n [dependents], accuracy_a [0-1], accuracy_b [0-1], difference [accuracy_b - accuracy_a],
--          gained [dependents], lost [dependents], layer_a, head_a, direction_a [dep_to_head; head_to_dep],
--          layer_b, head_b, direction_b, derived [not annotated]
-- source:  Clark et al. 2019, Table 1, for two models
-- paint:   bars(accuracy_b, accuracy_a, by=relation)
with arcs as materialized (
    select
        p.example_a, p.example_b, a.word as dependent, a.governor, a.derived,
        if($deprel_level = 'base', split_part(a.deprel, ':', 1), a.deprel) as relation
    from pairs as p
    join a.relations as a on a.example = p.example_a
    join b.relations as b
        on b.example = p.example_b and b.side = a.side and b.word = a.word and b.deprel = a.deprel
        and b.derived = a.derived and b.governor is not distinct from a.governor
    where
        p.equal_words
        and a.side = (select any_value(queries) from a.heads where kind = $kind)
        and $kind <> 'cross'
        and ($derived or not a.derived)
        and ($words = 'all' or split_part(a.deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(a.deprel, ':', 1) <> 'root')
),
every_arc as materialized (
    from arcs
    union all
    select * replace ('all' as relation) from arcs where not derived
),
totals as (
    select relation, derived, count(*) as n from every_arc group by relation, derived
),
directions as (
    select unnest(['dep_to_head', 'head_to_dep']) as direction
),
predictions as (
    select 'a' as store, e.relation, e.derived, d.direction, e.example_a, e.dependent, e.governor,
        if(d.direction = 'head_to_dep', f.attended_by, f.attends_to) as predicted
    from every_arc as e cross join directions as d
    join a.stored.word_facts as f on f.example = e.example_a and f.word = e.dependent and f.kind = $kind
    union all
    select 'b', e.relation, e.derived, d.direction, e.example_a, e.dependent, e.governor,
        if(d.direction = 'head_to_dep', f.attended_by, f.attends_to)
    from every_arc as e cross join directions as d
    join b.stored.word_facts as f on f.example = e.example_b and f.word = e.dependent and f.kind = $kind
),
all_heads as (
    select 'a' as store, layer, head, position from a.stored.heads where kind = $kind
    union all
    select 'b', layer, head, position from b.stored.heads where kind = $kind
),
hits as (
    select p.store, p.relation, p.derived, p.direction, h.position, count(*) as correct
    from predictions as p
    join all_heads as h on h.store = p.store and p.predicted[h.position] = p.governor
    group by p.store, p.relation, p.derived, p.direction, h.position
),
best as materialized (
    select h.store, t.relation, t.derived, h.layer, h.head, h.position, d.direction, coalesce(e.correct, 0) as correct
    from totals as t
    cross join all_heads as h
    cross join directions as d
    left join hits as e
        on e.store = h.store and e.relation = t.relation and e.derived = t.derived
        and e.direction = d.direction and e.position = h.position
    qualify row_number() over (
        partition by h.store, t.relation, t.derived order by coalesce(e.correct, 0) desc, h.position, d.direction
    ) = 1
),
marked as (
    select
        p.relation, p.derived, p.example_a, p.dependent, p.governor,
        bool_or(p.store = 'a' and p.predicted[c.position] = p.governor) as right_a,
        bool_or(p.store = 'b' and p.predicted[c.position] = p.governor) as right_b
    from predictions as p
    join best as c using (store, relation, derived, direction)
    group by p.relation, p.derived, p.example_a, p.dependent, p.governor
),
changes as (
    select
        relation, derived,
        count(*) filter (right_b and not coalesce(right_a, false)) as gained,
        count(*) filter (right_a and not coalesce(right_b, false)) as lost
    from marked
    group by relation, derived
)
select
    t.relation, t.n, a.correct / t.n as accuracy_a, b.correct / t.n as accuracy_b,
    (b.correct - a.correct) / t.n as difference, coalesce(c.gained, 0) as gained, coalesce(c.lost, 0) as lost,
    a.layer as layer_a, a.head as head_a, a.direction as direction_a,
    b.layer as layer_b, b.head as head_b, b.direction as direction_b, t.derived
from totals as t
join best as a on a.store = 'a' and a.relation = t.relation and a.derived = t.derived
join best as b on b.store = 'b' and b.relation = t.relation and b.derived = t.derived
left join changes as c on c.relation = t.relation and c.derived = t.derived
where
    t.n >= $min_count
    and t.relation not in ('root', 'punct')
    and ($relation is null or t.relation = $relation)
order by t.relation <> 'all', t.n desc, t.relation
