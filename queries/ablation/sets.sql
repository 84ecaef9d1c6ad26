-- Which sets of heads the searches found, the best first.
--
-- `greedy` adds at each step the head whose removal leaves the best model, `beam` keeps several sets at each step; both
-- judged by the metric that the recipe names. `kept` marks the sets from which the search went on. A set that both tried
-- is listed for each.
--
-- `delta` is value - baseline, the model as it is: what the task needs has a negative one, but for the loss a positive
-- one. `metric` null is the task's default, `intervention` null the first that was run; `zero` takes away what the head
-- adds, `uniform` gives all real keys the same weight (Kovaleva et al.), `mean` puts in the mean output of the head: three
-- different experiments. Metrics are those of the view set_scores.
--
-- `bootstrap` resamples the examples so often, with replacement, for the 2.5 and 97.5 percentiles of delta; equal seeds
-- give equal intervals. Null for f1 of classes, matthews and correlations, which are no means over examples.
-- reads:   head_sets, set_scores, example_scores, examples
-- needs:   head_scores
-- params:  plan text in (greedy, beam) = null, limit integer = 20, metric text = null, intervention text in (zero, uniform, mean) = null,
--          bootstrap integer = 0, seed integer = 0
-- returns: task, metric, intervention, plan, k [heads that are off], head_set, kept, value, baseline,
--          delta [value - baseline], n [examples or targets], delta_low [null without bootstrap], delta_high
-- source:  Song's poster, on sets of heads
-- paint:   scatter(k, value, label=head_set, by=plan)
with chosen as materialized (
    select distinct
        s.head_set, s.intervention, s.plan, s.step, s.kept,
        v.task, v.metric, v.value, b.value as baseline, v.n
    from head_sets as s
    join set_scores as v using (head_set)
    left join set_scores as b on b.head_set = 'none' and b.metric = v.metric
    where
        s.plan in ('greedy', 'beam') and ($plan is null or s.plan = $plan)
        and if($metric is null, v.is_default, v.metric = $metric)
        and s.intervention = coalesce($intervention, (
            select arg_min(intervention, list_position(['zero', 'uniform', 'mean'], intervention)) from head_sets
        ))
),
draws as (
    select resample, example, count(*) as times
    from (
        select
            r.resample,
            numbers[1 + (md5_number_lower($seed || '/' || r.resample || '/' || place) % len(numbers))::integer] as example
        from (select list(example order by example) as numbers from examples) as e,
            (select unnest(range($bootstrap)) as resample) as r,
            (select unnest(range(1, len(numbers) + 1)) as place from (
                select list(example) as numbers from examples)) as p
    )
    group by resample, example
),
differences as (  -- only of metrics that are means over examples
    select s.head_set, s.example, s.total, s.n, b.total as baseline_total, b.n as baseline_n
    from example_scores as s
    join chosen as c using (head_set)
    join example_scores as b on b.head_set = 'none' and b.example = s.example and b.metric = s.metric
    where s.metric = c.metric
),
intervals as (
    select head_set, quantile_cont(delta, 0.025) as delta_low, quantile_cont(delta, 0.975) as delta_high
    from (
        select
            head_set, resample,
            sum(times * total) / sum(times * n) - sum(times * baseline_total) / sum(times * baseline_n) as delta
        from differences
        join draws using (example)
        group by head_set, resample
    )
    where $bootstrap > 0  -- known when DuckDB plans: without a bootstrap none of it runs
    group by head_set
)
select
    c.task, c.metric, c.intervention, c.plan, c.step as k, c.head_set, c.kept, c.value, c.baseline,
    c.value - c.baseline as delta, c.n, i.delta_low, i.delta_high
from chosen as c
left join intervals as i using (head_set)
order by if(c.metric = 'loss', -1, 1) * c.value desc nulls last, c.step, c.plan, c.head_set
limit $limit
