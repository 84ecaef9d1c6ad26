-- One row for each example and head: how far the patches of an image look on their grid.
select example, kind, layer, head, n_queries, distance_sum, distance_renormalised_sum
from stored.grid_facts
