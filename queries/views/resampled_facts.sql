-- One row for each map, resampled to one size.
select example, kind, layer, head, weights
from stored.resampled_facts
