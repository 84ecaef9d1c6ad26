-- Which head, in which direction, knows each relation best, and how well a fixed offset does.
--
-- Definitions are those of relations/accuracy and relations/baselines; root and punct are not listed. By default head
-- and offset are chosen on the words that they are scored on, as in the paper's Table 1, which flatters both.
-- `held_out` chooses on examples of even number and scores on those of odd number. Ties go to the lowest layer and
-- head, and the lowest offset.
-- reads:   word_facts(pieces=$pieces), words
-- params:  kind text = null, relation text = null, deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all,
--          possessive boolean = false, pieces text in (mean, first, max) = mean, min_count integer = 1,
--          held_out boolean = false
-- returns: relation, n [dependents scored], layer, head, direction [dep_to_head; head_to_dep], accuracy [0-1],
--          baseline [accuracy of the offset, 0-1], offset [words], head_label [layer-head, from 1 as papers print]
-- source:  Clark et al. 2019, Table 1
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
        w.example, w.side, w.governor, s.root, s.last_word,
        if($held_out, w.example % 2, 0) as fold,
        if($deprel_level = 'base', split_part(w.deprel, ':', 1), w.deprel) as relation,
        w.word + if(c.word is not null and w.deprel in ('poss', 'nmod:poss'), 1, 0) as scored
    from words as w
    join sentences as s using (example, side, part, sentence)
    left join clitics as c using (example, side, word)
    where
        w.deprel is not null
        and w.aligned <> 'none'
        and w.side = (select any_value(queries) from heads where kind = $kind)
        and $kind <> 'cross'
        and ($words = 'all' or split_part(w.deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(w.deprel, ':', 1) <> 'root')
),
head_counts as (
    select
        d.relation, d.fold, f.layer, f.head,
        count(*) as n,
        count(*) filter (f.attends_to = d.governor) as dep_to_head,
        count(*) filter (f.attended_by = d.governor) as head_to_dep
    from dependents as d
    join word_facts as f on f.example = d.example and f.side = d.side and f.word = d.scored
    where f.kind = $kind
    group by d.relation, d.fold, f.layer, f.head
),
head_sums as (
    select
        relation, fold, layer, head, n,
        unnest(['dep_to_head', 'head_to_dep']) as direction,
        unnest([dep_to_head, head_to_dep]) as correct
    from (
        from head_counts
        union all
        select 'all', fold, layer, head, sum(n)::bigint, sum(dep_to_head)::bigint, sum(head_to_dep)::bigint
        from head_counts
        group by fold, layer, head
    )
),
offset_counts as (
    select
        relation, fold, o.offset,
        count(*) as n,
        count(*) filter (
            greatest(root, least(last_word, scored + o.offset)) = coalesce(governor, root)
        ) as correct
    from dependents, (select unnest([-3, -2, -1, 0, 1, 2]) as offset) as o
    group by relation, fold, o.offset
),
offset_sums as (
    from offset_counts
    union all
    select 'all', fold, "offset", sum(n)::bigint, sum(correct)::bigint
    from offset_counts
    group by fold, "offset"
),
chosen_head as (
    select relation, layer, head, direction
    from head_sums
    where fold = 0
    qualify row_number() over (partition by relation order by correct desc, layer, head, direction) = 1
),
chosen_offset as (
    select relation, "offset"
    from offset_sums
    where fold = 0
    qualify row_number() over (partition by relation order by correct desc, "offset") = 1
)
select
    h.relation, h.n, h.layer, h.head, h.direction,
    h.correct / h.n as accuracy,
    o.correct / o.n as baseline,
    o.offset,
    (h.layer + 1) || '-' || (h.head + 1) as head_label
from head_sums as h
join chosen_head using (relation, layer, head, direction)
join offset_sums as o using (relation, fold)
join chosen_offset using (relation, "offset")
where
    h.fold = if($held_out, 1, 0)
    and h.n >= $min_count
    and h.relation not in ('root', 'punct')
    and ($relation is null or h.relation = $relation)
order by h.relation <> 'all', h.n desc, h.relation
