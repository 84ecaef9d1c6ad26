-- How often each head's most attended word is the syntactic governor, or the dependent.
--
-- `dep_to_head`: of all other words, the dependent's row weighs its governor most. `head_to_dep`: of all other words,
-- the governor's row weighs the dependent most. The paper has these two. `head_row`: of all other words, the
-- governor's row weighs the dependent most of its own row, so of several dependents one is right at most. Special
-- tokens and the word itself take no part. The relation `all` counts every annotated arc, also the root, which no
-- head can get right.
--
-- `possessive` scores the clitic in place of the possessor before it, as the paper does. `derived` adds `pobj` and
-- `prep` to Universal Dependencies (see the view `relations`). `compat = clark` leaves out a relation that a head gets
-- wholly right, as the paper's code does. Maps between two texts have no governors, and no rows.
--
-- With `weights = norm` a weight counts times |f(x)|, the length of what the head moves from the key at weight 1: a row's
-- word is the one from which most is moved. A column has one key, and its word changes only where that has several
-- tokens.
-- reads:   relations, heads, word_facts(pieces=$pieces, weights=$weights)
-- needs:   relations, value_norms if weights=norm
-- params:  kind text = null, relation text = null, layer integer = null, head integer = null,
--          deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all, derived boolean = true,
--          possessive boolean = false, pieces text in (mean, first, max) = mean, min_count integer = 1,
--          compat text in (strict, clark) = strict,
--          weights text in (attention, norm) = attention
-- returns: layer, head, direction [dep_to_head; head_row; head_to_dep], relation, n [dependents], correct,
--          accuracy [0-1], derived [not annotated]
-- source:  Clark et al. 2019, section 4.2
-- paint:   accuracy, layers(accuracy, by=direction)
with arcs as materialized (
    select
        example, governor, derived,
        if($possessive, coalesce(clitic, word), word) as dependent,
        if($deprel_level = 'base', split_part(deprel, ':', 1), deprel) as relation
    from relations
    where
        side = (select any_value(queries) from heads where kind = $kind)
        and $kind <> 'cross'
        and ($derived or not derived)
        and ($words = 'all' or split_part(deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(deprel, ':', 1) <> 'root')
),
-- Rows that meet lists over heads are few and narrow: a number stands for the relation, and one row of lists serves two
-- directions.
buckets as materialized (
    select relation, derived, (row_number() over ())::smallint as bucket, count(*) as n
    from arcs
    group by relation, derived
),
asked as materialized (
    select b.bucket, a.example, a.dependent, a.governor
    from arcs as a
    join buckets as b using (relation, derived)
    where $relation is null or $relation in ('all', a.relation)
),
by_dependent as not materialized (
    select a.bucket, a.governor, f.attends_to, f.attended_by
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.dependent
    where f.kind = $kind
),
by_governor as not materialized (
    select a.bucket, a.dependent, f.attends_to
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.governor
    where f.kind = $kind
),
asked_heads as (
    select layer, head, position
    from stored.heads
    where kind = $kind and ($layer is null or layer = $layer) and ($head is null or head = $head)
),
-- The word that a row or column weighs most is the one that would be right.
bucket_hits as (
    select 'dep_to_head' as direction, p.bucket, h.position, count(*) as correct
    from by_dependent as p
    join asked_heads as h on p.attends_to[h.position] = p.governor
    group by p.bucket, h.position
    union all
    select 'head_to_dep', p.bucket, h.position, count(*)
    from by_dependent as p
    join asked_heads as h on p.attended_by[h.position] = p.governor
    group by p.bucket, h.position
    union all
    select 'head_row', p.bucket, h.position, count(*)
    from by_governor as p
    join asked_heads as h on p.attends_to[h.position] = p.dependent
    group by p.bucket, h.position
),
hits as (
    select h.direction, b.relation, b.derived, h.position, h.correct
    from bucket_hits as h
    join buckets as b using (bucket)
),
every_hit as (
    from hits
    union all
    select direction, 'all', false, position, sum(correct)::bigint
    from hits
    where not derived
    group by direction, position
),
totals as (
    select relation, derived, n
    from buckets
),
every_total as (
    from totals
    union all
    select 'all', false, sum(n)::bigint
    from totals
    where not derived
),
scores as (
    select h.layer, h.head, d.direction, t.relation, t.derived, t.n, coalesce(e.correct, 0) as correct
    from every_total as t
    cross join asked_heads as h
    cross join (select unnest(['dep_to_head', 'head_row', 'head_to_dep']) as direction) as d
    left join every_hit as e
        on e.relation = t.relation and e.derived = t.derived
        and e.direction = d.direction and e.position = h.position
)
select layer, head, direction, relation, n, correct, correct / n as accuracy, derived
from scores
where
    n >= $min_count
    and ($relation is null or relation = $relation)
    and ($compat = 'strict' or correct < n)
order by relation <> 'all', n desc, relation, direction, layer, head
