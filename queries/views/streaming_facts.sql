-- One row for each example and head: the weight on the first keys and on the nearest ones.
select example, kind, layer, head, n_queries, mass_sum
from stored.streaming_facts
