-- Which heads link the words of a pair: a subject and its verb, or the nouns and pronouns of a sentence.
--
-- subject_verb: subject (source) and its verb; noun_pronoun: noun (source) and pronoun of one sentence; governor: every
-- word (source) and its governor. An example's value is the largest weight over its pairs, or their mean; examples
-- without pairs do not count. Beside it stands what distance alone gives: how far apart the pairs are, and the share
-- of them that lie at the commonest offset, which is the accuracy of always guessing it.
-- reads:   pair_facts(property=$property, pieces=$pieces)
-- needs:   words, relations if property=subject_verb, relations if property=governor, tags if property=noun_pronoun
-- params:  kind text = null, property text in (subject_verb, noun_pronoun, governor) = subject_verb,
--          aggregate text in (max, mean) = max, pieces text in (mean, first, max) = mean
-- returns: layer, head, direction [source_to_target; target_to_source], value [weight, 0-1],
--          distance_words [mean of the pairs], offset [the commonest, target - source],
--          baseline [share of pairs at that offset], n [examples]
-- source:  Kovaleva et al. 2019, section 4.5
-- paint:   value, layers(value, by=direction)
with pairs as (
    select target_word - source_word as "offset"
    from stored.pair_facts
    where kind = $kind and list_count(forward) > 0
),
commonest as (
    select "offset", count(*) / (select count(*) from pairs) as baseline
    from pairs
    group by "offset"
    order by count(*) desc, abs("offset"), "offset"
    limit 1
),
values_of as (
    select
        example, layer, head,
        if($aggregate = 'max', max(forward), avg(forward)) as forward,
        if($aggregate = 'max', max(backward), avg(backward)) as backward
    from pair_facts
    where kind = $kind
    group by example, layer, head
),
means as (
    select
        layer, head,
        unnest(['source_to_target', 'target_to_source']) as direction,
        unnest([avg(forward), avg(backward)]) as value,
        count(forward) as n
    from values_of
    group by layer, head
)
select
    m.layer, m.head, m.direction, m.value,
    (select avg(abs("offset")) from pairs) as distance_words,
    c.offset, c.baseline, m.n
from means as m
left join commonest as c on true
order by m.layer, m.head, m.direction
