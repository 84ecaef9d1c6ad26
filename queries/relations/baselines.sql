-- How often the word at a fixed offset is the syntactic governor: what a head has to beat.
--
-- The word `offset` places away is predicted, cut at the ends of the sentence; the place before the first word stands
-- for the root. `best` keeps the best offset of each relation, the lowest on a tie.
-- reads:   words
-- params:  kind text = null, relation text = null, deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all,
--          possessive boolean = false, min_count integer = 1, best boolean = false
-- returns: relation, offset [words; -3 to 2], n [dependents], correct, accuracy [0-1]
-- source:  Clark et al. 2019, section 4.2
with clitics as (
    select example, side, word - 1 as word
    from words
    where
        $possessive
        and (
            xpos = 'POS' or lower(form) in ('''s', '’s')
            or (form in ('''', '’') and upos is distinct from 'PUNCT')
        )
),
sentences as (
    select example, side, part, sentence, min(word) - 1 as root, max(word) as last_word
    from words
    group by example, side, part, sentence
),
dependents as (
    select
        coalesce(w.governor, s.root) as governor, s.root, s.last_word,
        if($deprel_level = 'base', split_part(w.deprel, ':', 1), w.deprel) as relation,
        w.word + if(c.word is not null and w.deprel in ('poss', 'nmod:poss'), 1, 0) as scored
    from words as w
    join sentences as s using (example, side, part, sentence)
    left join clitics as c using (example, side, word)
    where
        w.deprel is not null
        and w.aligned <> 'none'
        and w.side = (select any_value(queries) from heads where kind = $kind)
        and ($words = 'all' or split_part(w.deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(w.deprel, ':', 1) <> 'root')
),
counts as (
    select
        relation, o.offset,
        count(*) as n,
        count(*) filter (greatest(root, least(last_word, scored + o.offset)) = governor) as correct
    from dependents, (select unnest([-3, -2, -1, 0, 1, 2]) as offset) as o
    group by relation, o.offset
),
every as (
    from counts
    union all
    select 'all', "offset", sum(n)::bigint, sum(correct)::bigint
    from counts
    group by "offset"
)
select relation, "offset", n, correct, correct / n as accuracy
from every
where n >= $min_count and ($relation is null or relation = $relation)
qualify not $best or row_number() over (partition by relation order by correct desc, "offset") = 1
order by relation <> 'all', n desc, relation, "offset"
