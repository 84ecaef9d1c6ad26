-- Which heads were switched off together, and how: one row for each plan, intervention and set.
select
    head_set, task, plan, series, ranking, metric, step, kept, intervention, size, kind, layer, head, kinds, layers, heads,
    param_groups
from stored.head_sets
