-- One row for each example and head: the weight at each offset from the query.
select example, kind, layer, head, n_queries, mass
from stored.offset_facts
