-- How often the word at a fixed offset is the syntactic governor: what a head has to beat.
--
-- The word `offset` places away is predicted, cut at the ends of the sentence; the place before the first word stands
-- for the root. The paper tries three words back to two ahead. `best` keeps the best offset of each relation, the
-- lowest on a tie. The other parameters are those of relations/accuracy.
-- reads:   relations, words, heads
-- needs:   relations
-- params:  kind text = null, relation text = null, deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all, derived boolean = true,
--          possessive boolean = false, reach_back integer = 3, reach_ahead integer = 2,
--          min_count integer = 1, best boolean = false, compat text in (strict, clark) = strict
-- returns: relation, offset [words], n [dependents], correct, accuracy [0-1], derived [not annotated]
-- source:  Clark et al. 2019, section 4.2
-- paint:   matrix(accuracy, relation, offset)
with sentences as (
    select example, side, part, sentence, min(word) - 1 as root, max(word) as last_word
    from words
    group by example, side, part, sentence
),
arcs as (
    select
        s.root, s.last_word, r.derived,
        coalesce(r.governor, s.root) as governor,
        if($possessive, coalesce(r.clitic, r.word), r.word) as dependent,
        if($deprel_level = 'base', split_part(r.deprel, ':', 1), r.deprel) as relation
    from relations as r
    join sentences as s using (example, side, part, sentence)
    where
        r.side = (select any_value(queries) from heads where kind = $kind)
        and $kind <> 'cross'
        and ($derived or not r.derived)
        and ($words = 'all' or split_part(r.deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(r.deprel, ':', 1) <> 'root')
),
counts as (
    select
        relation, derived, o.offset,
        count(*) as n,
        count(*) filter (greatest(root, least(last_word, dependent + o.offset)) = governor) as correct
    from arcs, (select unnest(range(-$reach_back, $reach_ahead + 1)) as offset) as o
    group by relation, derived, o.offset
),
every as (
    from counts
    union all
    select 'all', false, "offset", sum(n)::bigint, sum(correct)::bigint
    from counts
    where not derived
    group by "offset"
)
select relation, "offset", n, correct, correct / n as accuracy, derived
from every
where
    n >= $min_count
    and ($relation is null or relation = $relation)
    and ($compat = 'strict' or correct < n)
qualify not $best or row_number() over (partition by relation, derived order by correct desc, "offset") = 1
order by relation <> 'all', n desc, relation, "offset"
