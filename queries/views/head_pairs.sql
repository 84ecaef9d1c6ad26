-- One row for each pair of heads: their Jensen-Shannon divergence over all examples.
select kind, layer_a, head_a, layer_b, head_b, js_sum, n_rows, n_examples
from stored.head_pairs
