-- One row for each word and head: the other word it attends to most, and the other word that attends to it most.
select
    f.example, f.kind, f.word, h.layer, h.head,
    f.attends_to[h.position] as attends_to,
    f.attends_to_weight[h.position] as attends_to_weight,
    f.attended_by[h.position] as attended_by,
    f.attended_by_weight[h.position] as attended_by_weight,
    h.queries as side
from stored.word_facts as f
join stored.heads as h on h.kind = f.kind
