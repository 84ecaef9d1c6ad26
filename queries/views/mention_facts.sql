-- One row for each mention and head: the candidate that its head word attends to most, and that attends to it most.
select
    f.example, f.kind, f.mention, h.layer, h.head,
    f.attends_to[h.position] as attends_to,
    f.attends_to_weight[h.position] as attends_to_weight,
    f.attended_by[h.position] as attended_by,
    f.attended_by_weight[h.position] as attended_by_weight
from stored.mention_facts as f
join stored.heads as h on h.kind = f.kind
