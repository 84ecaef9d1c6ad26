-- One row for each example, pattern and head: the weight on the previous token, on copies, and on what followed them.
select
    f.example, f.kind, f.pattern, f.n_queries, f.n_pairs, f.uniform, f.uniform_total, h.layer, h.head,
    f.weight[h.position] as weight, f.total[h.position] as total
from stored.induction_facts as f
join stored.heads as h on h.kind = f.kind
