-- On how many keys each head spreads a row, and how much its largest weights hold.
--
-- effective_keys is exp(entropy), inverse_square 1 / sum of squared weights: both are n for equal weights on n keys.
-- `top` is the sum of the `top` largest weights of a row, `keys_above` the number of keys that weigh more than `above`.
-- reads:   transfer_facts(top=$top, above=$above)
-- params:  kind text = null, mode text in (macro, micro) = macro, top integer = 5, above real = 0.1
-- returns: layer, head, statistic [effective_keys; inverse_square; top1; top; keys_above], value, n [examples]
-- source:  attention as information transfer, after Elhage et al. 2021
-- paint:   value
with sums as (
    select
        layer, head, n_queries,
        unnest(['effective_keys', 'inverse_square', 'top1', 'top', 'keys_above']) as statistic,
        unnest([effective_keys_sum, inverse_square_sum, top1_sum, top_sum, keys_above_sum]) as total
    from transfer_facts
    where kind = $kind
)
select
    layer, head, statistic,
    case $mode
        when 'macro' then avg(total / n_queries)
        else sum(total) / sum(n_queries)
    end as value,
    count(total) as n
from sums
group by layer, head, statistic
order by layer, head, list_position(['effective_keys', 'inverse_square', 'top1', 'top', 'keys_above'], statistic)
