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
-- The word whose row or column is read, and the word that would be right.
asked as (
    select 'dep_to_head' as direction, example, relation, derived, dependent as word, governor as gold
    from arcs
    union all
    select 'head_to_dep', example, relation, derived, dependent, governor
    from arcs
    union all
    select 'head_row', example, relation, derived, governor, dependent
    from arcs
),
-- A word's list over heads is taken before it meets the heads: afterwards it would be taken once a head.
predictions as (
    select
        a.direction, a.relation, a.derived, a.gold,
        if(a.direction = 'head_to_dep', f.attended_by, f.attends_to) as predicted
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.word
    where f.kind = $kind and ($relation is null or $relation in ('all', a.relation))
),
asked_heads as (
    select layer, head, position
    from stored.heads
    where kind = $kind and ($layer is null or layer = $layer) and ($head is null or head = $head)
),
hits as (
    select p.direction, p.relation, p.derived, h.position, count(*) as correct
    from predictions as p
    join asked_heads as h on p.predicted[h.position] = p.gold
    group by p.direction, p.relation, p.derived, h.position
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
    select relation, derived, count(*) as n
    from arcs
    group by relation, derived
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
