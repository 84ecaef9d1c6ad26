-- One row for each annotated pair of spans and head: the weights between the two.
select
    f.example, f.kind, f.link, h.layer, h.head,
    f.source_to_target[h.position] as source_to_target,
    f.target_to_source[h.position] as target_to_source,
    f.source_to_target_mean[h.position] as source_to_target_mean,
    f.target_to_source_mean[h.position] as target_to_source_mean
from stored.link_facts as f
join stored.heads as h on h.kind = f.kind
