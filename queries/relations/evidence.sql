-- The sentences behind a number: what one head predicts for the dependents of one relation.
--
-- Directions and other parameters are those of relations/accuracy, so that its `n` and `correct` can be read here
-- line by line; relation = all lists every annotated arc. Asked is the dependent (or the clitic in its place), and
-- right is its governor, null for a root; with `head_row`, asked is the governor, and right is the dependent. Words
-- are numbered from 0 over the example; the sentence begins at `first_word`.
-- With `weights = norm` weights are lengths: each times |f(x)|, that of what the head moves from the key at weight 1.
-- reads:   relations, words, examples, heads, word_facts(pieces=$pieces, weights=$weights)
-- needs:   relations, value_norms if weights=norm
-- params:  relation text, layer integer, head integer, kind text = null,
--          direction text in (dep_to_head, head_to_dep, head_row) = dep_to_head,
--          deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all, possessive boolean = false,
--          correct boolean = null, pieces text in (mean, first, max) = mean, limit integer from 0 = 20,
--          weights text in (attention, norm) = attention
-- returns: example, name, sentence, word [of the dependent], dependent, gold [what would be right],
--          predicted, weight [0-1], correct, asked_word, gold_word, predicted_word, first_word
-- source:  Clark et al. 2019, section 4.2
-- paint:   evidence(word=asked_word)
with arcs as (
    select
        example, side, part, sentence, word, governor,
        if($possessive, coalesce(clitic, word), word) as scored
    from relations
    where
        side = (select any_value(queries) from heads where kind = $kind)
        and $kind <> 'cross'
        and if(
            $relation = 'all', not derived,
            if($deprel_level = 'base', split_part(deprel, ':', 1), deprel) = $relation
        )
        and ($words = 'all' or split_part(deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(deprel, ':', 1) <> 'root')
),
asked as (
    select
        *,
        if($direction = 'head_row', governor, scored) as asked_word,
        if($direction = 'head_row', scored, governor) as gold_word
    from arcs
),
hits as (
    select
        a.*,
        if($direction = 'head_to_dep', f.attended_by, f.attends_to)[h.position] as predicted_word,
        if($direction = 'head_to_dep', f.attended_by_weight, f.attends_to_weight)[h.position] as weight,
        coalesce(predicted_word = a.gold_word, false) as correct
    from asked as a
    join stored.heads as h on h.kind = $kind and h.layer = $layer and h.head = $head
    left join stored.word_facts as f
        on f.example = a.example and f.word = a.asked_word and f.kind = $kind
    where $correct is null or coalesce(predicted_word = a.gold_word, false) = $correct
    order by a.example, a.word, a.governor
    limit $limit
),
sentences as (
    select example, side, part, sentence, string_agg(form, ' ' order by word) as text, min(word) as first_word
    from words
    where example in (select example from hits)
    group by example, side, part, sentence
)
select
    h.example, e.name, s.text as sentence, h.word, dependent.form as dependent,
    gold.form as gold, predicted.form as predicted, h.weight, h.correct,
    h.asked_word, h.gold_word, h.predicted_word, s.first_word
from hits as h
join examples as e using (example)
join sentences as s using (example, side, part, sentence)
join words as dependent
    on dependent.example = h.example and dependent.side = h.side and dependent.word = h.word
left join words as gold
    on gold.example = h.example and gold.side = h.side and gold.word = h.gold_word
left join words as predicted
    on predicted.example = h.example and predicted.side = h.side and predicted.word = h.predicted_word
order by h.example, h.word, h.gold_word, h.asked_word
