-- How the task fares as more and more heads are switched off together.
--
-- The heads go in the order of the plan: `ranking` delta, those first whose removal alone helped most by the metric of
-- the plan (Song); importance, the least important first (Michel et al.); or given in the recipe. Null takes the first
-- of these that was run. The model is not trained again.
--
-- `delta` is value - baseline, the model as it is: what the task needs has a negative one, but for the loss a positive
-- one. `metric` null is the task's default, `intervention` null the first of the three that was run; `zero` takes away
-- what the head adds, `uniform` gives all real keys the same weight (Kovaleva et al.), `mean` puts in the mean output
-- of the head: three different experiments. Metrics are those of the view set_scores.
--
-- `bootstrap` resamples the examples so often, with replacement, for the 2.5 and 97.5 percentiles of delta; equal seeds
-- give equal intervals. Null for f1 of classes, matthews and correlations, which are no means over examples.
-- reads:   set_effects, head_sets, head_scores, set_intervals(bootstrap=$bootstrap, seed=$seed)
-- needs:   pruned_heads
-- params:  ranking text in (delta, importance, given) = null, metric text = null,
--          intervention text in (zero, uniform, mean) = null, bootstrap integer from 0 = 0, seed integer from 0 = 0
-- returns: task, metric, intervention, series [which order], k [heads that are off], value, baseline,
--          delta [value - baseline], n [examples or targets], delta_low [null without bootstrap], delta_high, head_set
-- source:  Song's poster, table 2; Michel et al. 2019, section 4
-- paint:   profile(value, k, by=series)
with chosen as materialized (
    select distinct head_set, task, metric, intervention, ranking, series, step, value, baseline, delta, n
    from set_effects
    where
        plan = 'pruning' and ($ranking is null or ranking = $ranking)
        and case
            when $metric is null then is_default
            when $metric in (select metric from head_scores) then metric = $metric
            else error('metric: ' || (select string_agg(distinct metric, ', ' order by metric) from head_scores))
        end
        and case
            when $intervention is null then true
            when $intervention in (select intervention from head_sets where plan = 'pruning')
                then intervention = $intervention
            else error('intervention: one that the plan was run with')
        end
    -- Of the interventions that this plan was run with, the first.
    qualify
        list_position(['zero', 'uniform', 'mean'], intervention)
        = min(list_position(['zero', 'uniform', 'mean'], intervention)) over ()
        and list_position(['delta', 'importance', 'given'], ranking)
        = min(list_position(['delta', 'importance', 'given'], ranking)) over ()
)
select
    c.task, c.metric, c.intervention, c.series, c.step as k, c.value, c.baseline, c.delta, c.n,
    i.delta_low, i.delta_high, c.head_set
from chosen as c
left join set_intervals as i using (head_set, metric)
order by c.series, c.step, c.head_set
