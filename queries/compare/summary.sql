-- How alike two stores' heads are: do the same heads stand out, and do neighbouring layers do the same?
--
-- Metrics are those of compare/heads. `spearman` is the rank correlation over the heads that both stores have, null
-- where all heads of one are alike, and where the models have not as many layers and heads, so that no head stands for
-- another. `smoothness` is the mean over layers of |x(layer, head) - x(layer + 1, head)|, small where layers resemble
-- one another, as layers that share their parameters may.
-- reads:   a.head_facts(eps=$eps), b.head_facts(eps=$eps), pairs
-- params:  kind text = null, mode text in (macro, micro) = macro, eps real = 0.0001, paired boolean = true
-- returns: metric [as in compare/heads], spearman [-1 to 1], smoothness_a, smoothness_b, mean_a, mean_b,
--          mean_difference [b - a], n [heads that are correlated]
-- source:  Song, BERT against ALBERT
-- paint:   bars(spearman, by=metric)
with means as (
    select
        store, layer, head, metric,
        case $mode
            when 'macro' then avg(total / nullif(n_rows, 0))
            else sum(total) / nullif(sum(n_rows), 0)
        end as value
    from (
        select 'a' as store, * from a.head_metrics where not $paired or example in (select example_a from pairs)
        union all
        select 'b', * from b.head_metrics where not $paired or example in (select example_b from pairs)
    )
    where kind = $kind
    group by store, layer, head, metric
),
steps as (
    select
        store, metric,
        avg(value) as mean,
        avg(abs(next_value - value)) as smoothness
    from (
        select
            store, metric, value,
            lead(value) over (partition by store, metric, head order by layer) as next_value
        from means
    )
    group by store, metric
),
-- Equal values share the mean of their ranks.
ranks as (
    select
        metric,
        rank() over by_a + (count(*) over (partition by metric, a.value) - 1) / 2 as rank_a,
        rank() over by_b + (count(*) over (partition by metric, b.value) - 1) / 2 as rank_b
    from (from means where store = 'a') as a
    join (from means where store = 'b') as b using (layer, head, metric)
    where
        a.value is not null
        and b.value is not null
        and (
            (select (layers, heads) from a.stored.kinds where kind = $kind)
            = (select (layers, heads) from b.stored.kinds where kind = $kind)
        )
    window by_a as (partition by metric order by a.value), by_b as (partition by metric order by b.value)
),
correlations as (
    select
        metric, count(*) as n,
        if(min(rank_a) < max(rank_a) and min(rank_b) < max(rank_b), corr(rank_a, rank_b), null) as spearman
    from ranks
    group by metric
)
select
    metric, spearman, a.smoothness as smoothness_a, b.smoothness as smoothness_b, a.mean as mean_a, b.mean as mean_b,
    b.mean - a.mean as mean_difference, coalesce(n, 0) as n
from (from steps where store = 'a') as a
join (from steps where store = 'b') as b using (metric)
left join correlations using (metric)
order by list_position(['entropy', 'confidence', 'cls', 'sep', 'previous', 'next', 'self', 'distance'], metric)
