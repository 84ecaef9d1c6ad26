-- One row for each pair of token classes and head: the weight that goes from queries of the one to keys of the other.
select
    f.example, f.kind, f.query_class, f.key_class, f.n_queries, f.n_keys, f.uniform, h.layer, h.head,
    f.mass[h.position] as mass
from stored.flow_facts as f
join stored.heads as h on h.kind = f.kind
