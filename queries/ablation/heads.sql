-- What the task loses when one head alone is switched off.
--
-- `delta` is value - baseline, the model as it is: what the task needs has a negative one, but for the loss a positive
-- one. `metric` null is the task's default, `intervention` null the first of the three that was run; `zero` takes away what the head
-- adds, `uniform` gives all real keys the same weight (Kovaleva et al.), `mean` puts in the mean output of the head: three
-- different experiments. Metrics are those of the view set_scores.
--
-- `bootstrap` resamples the examples so often, with replacement, for the 2.5 and 97.5 percentiles of delta; equal seeds
-- give equal intervals. Null for f1 of classes, matthews and correlations, which are no means over examples.
-- reads:   set_effects, paired_scores, head_sets, head_scores, examples
-- needs:   ablated_heads
-- params:  kind text = null, metric text = null, intervention text in (zero, uniform, mean) = null,
--          bootstrap integer = 0, seed integer = 0
-- returns: task, metric, intervention, layer, head, value, baseline, delta [value - baseline], n [examples or targets],
--          delta_low [null without bootstrap], delta_high
-- source:  Michel et al. 2019; Kovaleva et al. 2019, section 4.6; Song's poster, Figure 5
-- paint:   grid(delta), bars(delta, by=head, low=delta_low, high=delta_high)
with chosen as materialized (
    select distinct head_set, task, metric, intervention, layer, head, value, baseline, delta, n
    from set_effects
    where
        plan = 'heads' and kind = $kind
        and case
            when $metric is null then is_default
            when $metric in (select metric from head_scores) then metric = $metric
            else error('metric: ' || (select string_agg(distinct metric, ', ' order by metric) from head_scores))
        end
        and case
            when $intervention is null then true
            when $intervention in (select intervention from head_sets where plan = 'heads')
                then intervention = $intervention
            else error('intervention: one that the plan was run with')
        end
    -- Of the interventions that this plan was run with, the first.
    qualify
        list_position(['zero', 'uniform', 'mean'], intervention)
        = min(list_position(['zero', 'uniform', 'mean'], intervention)) over ()
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
intervals as (
    select head_set, quantile_cont(delta, 0.025) as delta_low, quantile_cont(delta, 0.975) as delta_high
    from (
        select
            head_set, resample,
            sum(times * total) / sum(times * paired_scores.n) - sum(times * baseline_total) / sum(times * baseline_n) as delta
        from paired_scores
        join chosen using (head_set, metric)
        join draws using (example)
        group by head_set, resample
    )
    where $bootstrap > 0  -- known when DuckDB plans: without a bootstrap none of it runs
    group by head_set
)
select
    c.task, c.metric, c.intervention, c.layer, c.head, c.value, c.baseline, c.delta, c.n,
    i.delta_low, i.delta_high
from chosen as c
left join intervals as i using (head_set)
order by c.layer, c.head
