-- One row for each attention head; `queries` and `keys` name the side whose tokens lie along that axis.
select kind, layer, head, kv_head, param_group, queries, keys, causal
from stored.heads
