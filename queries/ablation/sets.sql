-- Which sets of heads the searches found, the best first.
--
-- `greedy` adds at each step the head whose removal leaves the best model, `beam` keeps several sets at each step; both
-- judged by the metric that the recipe names. `kept` marks the sets from which the search went on. A set that both tried
-- is listed for each.
--
-- `delta` is value - baseline, the model as it is: what the task needs has a negative one, but for the loss a positive
-- one. `metric` null is the task's default, `intervention` null the first of the three that was run; `zero` takes away
-- what the head adds, `uniform` gives all real keys the same weight (Kovaleva et al.), `mean` puts in the mean output
-- of the head: three different experiments. Metrics are those of the view set_scores.
--
-- `bootstrap` resamples the examples so often, with replacement, for the 2.5 and 97.5 percentiles of delta; equal seeds
-- give equal intervals. Null for f1 of classes, matthews and correlations, which are no means over examples.
-- reads:   set_effects, head_sets, head_scores, set_intervals(bootstrap=$bootstrap, seed=$seed)
-- needs:   searched_heads
-- params:  plan text in (greedy, beam) = null, limit integer from 0 = 20, metric text = null,
--          intervention text in (zero, uniform, mean) = null, bootstrap integer from 0 = 0, seed integer from 0 = 0
-- returns: task, metric, intervention, series [which search], k [heads that are off], head_set, kept, value, baseline,
--          delta [value - baseline], n [examples or targets], delta_low [null without bootstrap], delta_high
-- source:  Song's poster, on sets of heads
-- paint:   scatter(k, value, label=head_set, by=series)
with chosen as materialized (
    select distinct head_set, task, metric, intervention, plan, series, step, kept, value, baseline, delta, n
    from set_effects
    where
        plan in ('greedy', 'beam') and ($plan is null or plan = $plan)
        and case
            when $metric is null then is_default
            when $metric in (select metric from head_scores) then metric = $metric
            else error('metric: ' || (select string_agg(distinct metric, ', ' order by metric) from head_scores))
        end
        and case
            when $intervention is null then true
            when $intervention in (select intervention from head_sets where plan in ('greedy', 'beam'))
                then intervention = $intervention
            else error('intervention: one that the plan was run with')
        end
    -- Of the interventions that this plan was run with, the first.
    qualify
        list_position(['zero', 'uniform', 'mean'], intervention)
        = min(list_position(['zero', 'uniform', 'mean'], intervention)) over ()
)
select
    c.task, c.metric, c.intervention, c.series, c.step as k, c.head_set, c.kept, c.value, c.baseline,
    c.delta, c.n, i.delta_low, i.delta_high
from chosen as c
left join set_intervals as i using (head_set, metric)
order by if(c.metric = 'loss', -1, 1) * c.value desc nulls last, c.step, c.series, c.head_set
limit $limit
