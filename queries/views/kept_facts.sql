-- One row for each example and kept head of a store of the largest weights: what they hold and what they leave out.
select example, kind, layer, head, n_queries, kept_sum, rest_sum, rest_max, largest_cut
from stored.kept_facts
