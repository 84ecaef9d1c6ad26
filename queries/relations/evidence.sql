-- The sentences behind a number: what one head predicts for the dependents of one relation.
-- reads:   word_facts(pieces=$pieces), words, examples
-- params:  relation text, layer integer, head integer, kind text = null,
--          direction text in (dep_to_head, head_to_dep) = dep_to_head,
--          deprel_level text in (base, full) = full, correct boolean = null,
--          pieces text in (mean, first, max) = mean, limit integer = 20
-- returns: example, name, sentence, word, dependent, gold [its governor; null for a root], predicted, weight [0-1],
--          correct
-- source:  Clark et al. 2019, section 4.2
with hits as (
    select
        w.example, w.side, w.part, w.sentence, w.word, w.form as dependent, w.governor,
        if($direction = 'dep_to_head', f.attends_to, f.attended_by) as predicted,
        if($direction = 'dep_to_head', f.attends_to_weight, f.attended_by_weight) as weight,
        coalesce(predicted = w.governor, false) as correct
    from words as w
    join word_facts as f using (example, side, word)
    where
        f.kind = $kind
        and $kind <> 'cross'
        and f.layer = $layer
        and f.head = $head
        and w.aligned <> 'none'
        and if($deprel_level = 'base', split_part(w.deprel, ':', 1), w.deprel) = $relation
        and ($correct is null or coalesce(predicted = w.governor, false) = $correct)
    order by w.example, w.word
    limit $limit
),
sentences as (
    select example, side, part, sentence, string_agg(form, ' ' order by word) as text
    from words
    where example in (select example from hits)
    group by example, side, part, sentence
)
select
    h.example, e.name, s.text as sentence, h.word, h.dependent,
    gold.form as gold, other.form as predicted, h.weight, h.correct
from hits as h
join examples as e using (example)
join sentences as s using (example, side, part, sentence)
left join words as gold
    on gold.example = h.example and gold.side = h.side and gold.word = h.governor
left join words as other
    on other.example = h.example and other.side = h.side and other.word = h.predicted
order by h.example, h.word
