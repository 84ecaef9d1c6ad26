-- One row for each example and head: on how many keys its rows spread, and how much the largest weights hold.
select example, kind, layer, head, n_queries, effective_keys_sum, inverse_square_sum, top1_sum, top_sum, keys_above_sum
from stored.transfer_facts
