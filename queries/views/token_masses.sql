-- One row for each token and head: where its weight goes. Kept with facts = "full"; NaN where there is no such token.
select
    f.example, f.kind, f.token, h.layer, h.head,
    f.self_mass[h.position] as self_mass,
    f.previous_mass[h.position] as previous_mass,
    f.next_mass[h.position] as next_mass,
    f.cls_mass[h.position] as cls_mass,
    f.sep_mass[h.position] as sep_mass,
    f.punct_mass[h.position] as punct_mass,
    h.queries as side
from stored.token_masses as f
join stored.heads as h on h.kind = f.kind
