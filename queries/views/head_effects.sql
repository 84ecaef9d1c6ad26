-- What switching off one head alone does to each metric: one row for each head, intervention and metric.
--
-- `delta` is value - baseline, so that a head that the task needs has a negative one, but for the loss a positive one;
-- `harm` is delta with the sign turned so that it is positive for heads that the task needs, whatever the metric.
select distinct
    kind, layer, head, param_groups[1] as param_group, intervention, task, metric, value, baseline, delta,
    if(metric = 'loss', 1, -1) * delta as harm, n, is_default
from set_effects
where plan = 'heads'
