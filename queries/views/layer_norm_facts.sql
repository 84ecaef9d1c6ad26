-- One row for each layer and pair of token classes of an example: the lengths of what all heads move together, summed.
select
    example, kind, layer, query_class, key_class, n_queries, n_pairs, layer_norm_sum, residual_norm_sum,
    residual_norm_ln_sum
from stored.layer_norm_facts
