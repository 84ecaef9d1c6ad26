-- One row for each example, step on a grid and head: the weight that goes to keys that many rows and columns away.
select f.example, f.kind, f.dy, f.dx, f.n_queries, h.layer, h.head, f.mass[h.position] as mass
from stored.grid_offset_facts as f
join stored.heads as h on h.kind = f.kind
