-- One row for each token and head: the key it attends to most, that weight, and the entropy of its row.
--
-- Joining the lists to the heads and taking one entry is 2 to 4 times as fast as unnesting them, and a
-- condition on layer or head reaches the table of heads first.
select
    f.example, f.kind, f.token, h.layer, h.head,
    f.argmax[h.position] as argmax,
    f.max[h.position] as max,
    f.entropy_nats[h.position] as entropy_nats,
    h.queries as side
from stored.token_facts as f
join stored.heads as h on h.kind = f.kind
