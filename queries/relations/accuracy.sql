-- How often each head's most attended word is the syntactic governor.
--
-- `dep_to_head`: of all other words, the dependent's row weighs its governor most. `head_to_dep`: of all other words,
-- the governor's row weighs the dependent most. Special tokens and the word itself take no part. The relation `all`
-- counts every word, also the root, which no head can get right. `possessive` scores the clitic in place of the
-- possessor before it, as the paper does. Maps between two texts have no governors, and no rows.
-- reads:   word_facts(pieces=$pieces), words
-- params:  kind text = null, relation text = null, layer integer = null, head integer = null,
--          deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all,
--          possessive boolean = false, pieces text in (mean, first, max) = mean, min_count integer = 1
-- returns: layer, head, direction [dep_to_head; head_to_dep], relation, n [dependents], correct, accuracy [0-1]
-- source:  Clark et al. 2019, section 4.2
-- paint:   accuracy
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
dependents as (
    select
        w.example, w.side, w.governor,
        if($deprel_level = 'base', split_part(w.deprel, ':', 1), w.deprel) as relation,
        w.word + if(c.word is not null and w.deprel in ('poss', 'nmod:poss'), 1, 0) as scored
    from words as w
    left join clitics as c using (example, side, word)
    where
        w.deprel is not null
        and w.aligned <> 'none'
        and ($words = 'all' or split_part(w.deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(w.deprel, ':', 1) <> 'root')
),
counts as (
    select
        d.relation, f.layer, f.head,
        count(*) as n,
        count(*) filter (f.attends_to = d.governor) as dep_to_head,
        count(*) filter (f.attended_by = d.governor) as head_to_dep
    from dependents as d
    join word_facts as f on f.example = d.example and f.side = d.side and f.word = d.scored
    where
        f.kind = $kind
        and $kind <> 'cross'
        and ($layer is null or f.layer = $layer)
        and ($head is null or f.head = $head)
    group by d.relation, f.layer, f.head
),
every as (
    from counts
    union all
    select 'all', layer, head, sum(n)::bigint, sum(dep_to_head)::bigint, sum(head_to_dep)::bigint
    from counts
    group by layer, head
),
directed as (
    select
        layer, head, relation, n,
        unnest(['dep_to_head', 'head_to_dep']) as direction,
        unnest([dep_to_head, head_to_dep]) as correct
    from every
    where n >= $min_count and ($relation is null or relation = $relation)
)
select layer, head, direction, relation, n, correct, correct / n as accuracy
from directed
order by relation <> 'all', n desc, relation, direction, layer, head
