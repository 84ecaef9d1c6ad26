-- One row for each query token and head: the length of what the head adds to it, and of what all heads of its layer add.
select
    f.example, f.kind, f.token, h.layer, h.head,
    f.output_norm[h.position] as output_norm,
    f.layer_norm[h.layer + 1] as layer_norm,
    h.queries as side
from stored.output_norms as f
join stored.heads as h on h.kind = f.kind
