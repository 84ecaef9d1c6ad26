-- What switching off one head alone does to each metric: one row for each head, intervention and metric.
--
-- `delta` is value - baseline, so that a head that the task needs has a negative one, but for the loss a positive one;
-- `harm` is delta with the sign turned so that it is positive for heads that the task needs, whatever the metric.
with single as (
    select distinct head_set, intervention, kind, layer, head, param_groups[1] as param_group
    from head_sets
    where size = 1
)
select
    h.kind, h.layer, h.head, h.param_group, h.intervention, s.task, s.metric, s.value, b.value as baseline,
    s.value - b.value as delta, if(s.metric = 'loss', 1, -1) * (s.value - b.value) as harm, s.n, s.is_default
from single as h
join set_scores as s using (head_set)
left join set_scores as b on b.head_set = 'none' and b.metric = s.metric
