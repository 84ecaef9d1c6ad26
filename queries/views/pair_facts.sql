-- One row for each pair of words with a property and head: the weights between the two.
select
    f.example, f.kind, f.source_word, f.target_word, h.layer, h.head,
    f.forward[h.position] as forward,
    f.backward[h.position] as backward
from stored.pair_facts as f
join stored.heads as h on h.kind = f.kind
