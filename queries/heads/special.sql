-- How much each head attends to [CLS], to [SEP], and to '.' and ','; and where [SEP] itself and all else attend.
--
-- `sep_sep` is the weight from [SEP] to [SEP], `rest_sep` that from all other tokens to [SEP]. `strict` divides them
-- by the [SEP] tokens and by the other tokens of the example, `clark` by 2 and by all but 2, as the paper's code does.
-- With `weights = norm` a weight counts times |f(x)|, the length of what the head moves from the key at weight 1, and
-- each row is divided by its sum.
-- reads:   head_facts(weights=$weights)
-- needs:   value_norms if weights=norm
-- params:  kind text = null, mode text in (macro, micro) = macro, compat text in (strict, clark) = strict,
--          weights text in (attention, norm) = attention
-- returns: layer, head, metric [cls; sep; punct; sep_sep; rest_sep], value [weight, 0-1],
--          n [examples that have such queries]
-- source:  Clark et al. 2019, section 3.2
-- paint:   value, layers(value, by=metric)
with sums as (
    select
        layer, head,
        unnest(['cls', 'sep', 'punct', 'sep_sep', 'rest_sep']) as metric,
        unnest([cls_sum, sep_sum, punct_sum, sep_sep_sum, rest_sep_sum]) as total,
        unnest([
            n_queries, n_queries, n_queries,
            if($compat = 'clark', 2, n_sep),
            n_queries - if($compat = 'clark', 2, n_sep)
        ]) as rows
    from head_facts
    where kind = $kind
)
select
    layer, head, metric,
    case $mode
        when 'macro' then avg(total / rows)
        else sum(total) / sum(rows)
    end as value,
    count(*) as n
from sums
where rows > 0
group by layer, head, metric
order by layer, head, list_position(['cls', 'sep', 'punct', 'sep_sep', 'rest_sep'], metric)
