-- The merges of a hierarchical clustering of heads, as a dendrogram draws them.
--
-- Nodes are numbered as SciPy does: a head is layer * heads + head, the merge of step s is the number of heads + s.
-- `root` takes the square root of the divergence, which is a metric, as `method = ward` expects. Needs the extra
-- `analysis`.
-- reads:   head_linkage(eps=$eps, sampled=$sampled, method=$method, root=$root)
-- params:  kind text = null, eps real = 0.001, sampled integer = null,
--          method text in (average, single, complete, weighted, ward) = average, root boolean = false
-- returns: step, a [node], b [node], distance [nats a row, or their root], n_heads [below the merge]
-- source:  clustering of heads after Clark et al. 2019, section 6
select step, a, b, distance, n_heads
from head_linkage
where kind = $kind
order by step
