-- One row for each key token and head: the weight that it receives.
select
    f.example, f.kind, f.token, h.layer, h.head,
    f.received[h.position] as received,
    f.received_later[h.position] as received_later,
    f.from_cls[h.position] as from_cls,
    f.from_sep[h.position] as from_sep,
    h.keys as side
from stored.received_facts as f
join stored.heads as h on h.kind = f.kind
