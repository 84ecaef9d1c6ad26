-- One row for each word that has a governor and head: the weights between the two.
select
    f.example, f.kind, f.word, h.layer, h.head,
    f.to_governor[h.position] as to_governor,
    f.from_governor[h.position] as from_governor,
    h.queries as side
from stored.governor_facts as f
join stored.heads as h on h.kind = f.kind
