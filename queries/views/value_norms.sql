-- One row for each key token and head: the length of what the head moves from it at weight 1.
select f.example, f.kind, f.token, h.layer, h.head, f.value_norm[h.position] as value_norm, h.keys as side
from stored.value_norms as f
join stored.heads as h on h.kind = f.kind
