-- How sure of itself each head is: the largest weight of a row, on average.
--
-- `with_sep` looks at all keys, `drop_keys` leaves out [SEP] keys (or all special ones) without renormalising,
-- `drop_keys_and_queries` leaves out such queries as well, `drop_keys_renormalised` divides each row by what remains.
-- reads:   head_facts(drop=$drop)
-- params:  kind text = null, mode text in (macro, micro) = micro, drop text in (sep, special) = sep
-- returns: layer, head,
--          variant [with_sep; drop_keys; drop_keys_and_queries; drop_keys_renormalised],
--          value [weight, 0-1], n [examples]
-- source:  Song, confidence of BERT and ALBERT heads, after Voita et al. 2019
-- paint:   value, layers(value, by=variant)
with sums as (
    select
        layer, head,
        unnest(['with_sep', 'drop_keys', 'drop_keys_and_queries', 'drop_keys_renormalised']) as variant,
        unnest([max_sum, max_drop_keys_sum, max_drop_both_sum, max_drop_renormalised_sum]) as total,
        unnest([n_queries, n_queries, n_drop_both, n_queries]) as rows
    from head_facts
    where kind = $kind
)
select
    layer, head, variant,
    case $mode
        when 'macro' then avg(total / rows)
        else sum(total) / sum(rows)
    end as value,
    count(*) as n
from sums
where rows > 0
group by layer, head, variant
order by
    layer, head,
    list_position(['with_sep', 'drop_keys', 'drop_keys_and_queries', 'drop_keys_renormalised'], variant)
