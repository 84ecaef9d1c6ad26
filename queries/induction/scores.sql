-- Which heads look at the previous token, at an earlier copy of a token, or at what came after that copy (induction).
--
-- `repeated` is asked of random tokens that stand twice (corpus.kind = "repeated_random"): the mean weight on a pair of
-- the pattern, whatever the method. `natural` is asked of all other texts: `mul` is the share of the weight that lies on
-- pairs of the pattern, `abs` is 1 - mean over rows of the sum of |weight - pattern|, from -1 to 1. `auto` is `repeated`
-- where the store has such texts. `chance` is the same of equal attention to all visible keys. Special tokens are no
-- queries and in no pair. `exclude_bos` leaves the first key out, `exclude_current` the token itself, above and below
-- the line; `counted` is the share of the weight that remains. Where a model sees what comes later, copies count on
-- both sides and induction is null. Examples without a pair are left out.
-- reads:   induction_facts(exclude_bos=$exclude_bos, exclude_current=$exclude_current), examples
-- params:  kind text = null, corpus text in (auto, repeated, natural) = auto, method text in (mul, abs) = mul,
--          mode text in (macro, micro) = macro, exclude_bos boolean = false, exclude_current boolean = false
-- returns: layer, head, score [previous; next; duplicate; duplicate_after; induction], value, chance,
--          counted [0-1], pairs, n [examples with such pairs]
-- source:  Olsson et al. 2022; TransformerLens, head detector
-- paint:   value, layers(value, by=score, line=chance)
with texts as (
    select example, condition is not distinct from 'repeated_random' as repeated from examples
),
chosen as (
    from texts
    where
        case $corpus
            when 'auto' then repeated = (select bool_or(repeated) from texts)
            else repeated = ($corpus = 'repeated')
        end
),
sums as (
    -- value / value_of is the score of one example. One without a pair says nothing about the head.
    select
        layer, head, pattern as score, total, n_queries, n_pairs,
        case
            when n_pairs = 0 then null
            when repeated or $method = 'mul' then weight
            else n_queries - (total - 2 * weight + n_pairs)
        end as value,
        case
            when n_pairs = 0 then null
            when repeated or $method = 'mul' then uniform
            else n_queries - (uniform_total - 2 * uniform + n_pairs)
        end as chance,
        case when n_pairs = 0 then null when repeated then n_pairs when $method = 'mul' then total else n_queries
        end as value_of,
        case when n_pairs = 0 then null when repeated then n_pairs when $method = 'mul' then uniform_total else n_queries
        end as chance_of
    from induction_facts
    join chosen using (example)
    where kind = $kind
)
select
    layer, head, score,
    if($mode = 'macro', avg(value / nullif(value_of, 0)), sum(value) / nullif(sum(value_of), 0)) as value,
    if($mode = 'macro', avg(chance / nullif(chance_of, 0)), sum(chance) / nullif(sum(chance_of), 0)) as chance,
    sum(total) filter (where n_pairs > 0) / nullif(sum(n_queries) filter (where n_pairs > 0), 0) as counted,
    sum(n_pairs)::bigint as pairs,
    count(value / nullif(value_of, 0)) as n
from sums
group by layer, head, score
order by layer, head, list_position(['previous', 'next', 'duplicate', 'duplicate_after', 'induction'], score)
