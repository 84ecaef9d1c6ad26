-- Which heads match a word with the same word in the other text of a pair.
--
-- For each word that stands in both parts, whatever its case: the weight on its copies in the other part, and as
-- control on as many other words of that part, drawn at random. Punctuation takes no part, nor a word for which the
-- other part has too few others. `macro` averages over words and then over examples, `micro` over words.
-- reads:   same_word_facts(pieces=$pieces, seed=$seed)
-- needs:   parts, words
-- params:  kind text = null, mode text in (macro, micro) = macro, pieces text in (mean, first, max) = mean,
--          seed integer from 0 = 0
-- returns: layer, head, direction [a_to_b; b_to_a], value [weight, 0-1], control [weight, 0-1], difference,
--          n [examples with such words]
-- source:  Kovaleva et al. 2019, section 5
-- paint:   difference, layers(value, by=direction, line=control)
with sums as (
    select
        layer, head,
        unnest(['a_to_b', 'b_to_a']) as direction,
        unnest([a_to_b_sum, b_to_a_sum]) as total,
        unnest([a_to_b_control_sum, b_to_a_control_sum]) as control_total,
        unnest([n_a, n_b]) as words
    from same_word_facts
    where kind = $kind
),
means as (
    select
        layer, head, direction,
        if($mode = 'macro', avg(total / words), sum(total) / sum(words)) as value,
        if($mode = 'macro', avg(control_total / words), sum(control_total) / sum(words)) as control,
        count(*) as n
    from sums
    where words > 0
    group by layer, head, direction
)
select layer, head, direction, value, control, value - control as difference, n
from means
order by layer, head, direction
