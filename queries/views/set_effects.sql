-- What switching off a set of heads does to each metric: one row for each plan's set and metric; delta: value - baseline.
select
    h.head_set, h.plan, h.series, h.ranking, h.step, h.kept, h.intervention, h.size, h.kind, h.layer, h.head,
    h.param_groups, s.task, s.metric, s.value, b.value as baseline, s.value - b.value as delta, s.n, s.is_default
from head_sets as h
join set_scores as s using (head_set)
left join set_scores as b on b.head_set = 'none' and b.metric = s.metric
