-- One row for each head: norms, effective ranks and copying of its weights, where the store keeps them.
select w.kind, w.layer, w.head, h.kv_head, h.param_group, w.* exclude (kind, layer, head)
from stored.head_weights as w
join stored.heads as h using (kind, layer, head)
