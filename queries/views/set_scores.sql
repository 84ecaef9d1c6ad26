-- The value of each metric for each set of heads that was switched off, over the examples that are shown.
--
-- `loss` is the mean over all targets. `accuracy` is the share of examples, for language models of targets, that are
-- right. Of classes, `f1 CLASS` is that of one class, `f1` the mean over the classes that are right or predicted
-- somewhere, `matthews` the correlation of what is right and predicted. `pearson` and `spearman` (ties share a rank)
-- are between scores and gold numbers. `exact_match` and `f1` of answers are means over examples, `score` too. Null
-- where a metric is not defined. `is_default` marks the one that questions take where none is named.
with classes as (
    select head_set, task, class, sum(gold) as gold, sum(predicted) as predicted, sum(correct) as correct
    from (
        select head_set, task, gold as class, 1 as gold, 0 as predicted, (gold = predicted)::integer as correct
        from predictions
        where task = 'classification' and gold is not null
        union all
        select head_set, task, predicted, 0, 1, 0
        from predictions
        where task = 'classification' and gold is not null
    )
    group by head_set, task, class
),
numbers as (
    select
        head_set, task, score, number,
        rank() over (partition by head_set order by score)
            + (count(*) over (partition by head_set, score) - 1) / 2 as score_rank,
        rank() over (partition by head_set order by number)
            + (count(*) over (partition by head_set, number) - 1) / 2 as number_rank
    from (
        select head_set, task, score, try_cast(gold as double) as number
        from predictions
        where task in ('regression', 'similarity') and gold is not null and score is not null
    )
),
scores as (
    select head_set, task, metric, sum(total) / sum(n) as value, sum(n) as n
    from example_scores
    group by head_set, task, metric
    union all
    select head_set, task, 'f1 ' || class, 2 * correct / (gold + predicted), sum(gold) over (partition by head_set)
    from classes
    union all
    select head_set, task, 'f1', avg(2 * correct / (gold + predicted)), sum(gold)
    from classes
    group by head_set, task
    union all
    select
        head_set, task, 'matthews',
        (sum(correct) * sum(gold) - sum(gold * predicted)) / nullif(
            sqrt((sum(gold) ** 2 - sum(predicted ** 2)) * (sum(gold) ** 2 - sum(gold ** 2))), 0
        ),
        sum(gold)
    from classes
    group by head_set, task
    union all
    select head_set, task, 'pearson', corr(score, number), count(*)
    from numbers
    group by head_set, task
    union all
    select head_set, task, 'spearman', corr(score_rank, number_rank), count(*)
    from numbers
    group by head_set, task
)
select
    head_set, task, metric, if(isfinite(value), value, null) as value, n::bigint as n,
    metric = case
        when task = 'classification' then 'accuracy'
        when task in ('regression', 'similarity') then 'spearman'
        when task = 'answering' then 'f1'
        when contains(task, ':') then 'score'
        else 'loss'
    end as is_default
from scores
