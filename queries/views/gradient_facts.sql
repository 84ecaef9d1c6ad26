-- One row for each pair of token classes and head: how the loss changes with the weights from the one to the other.
-- `abs_gradient`, `gradient_weight`, `abs_gradient_weight` and `weight` are sums over `n_pairs` pairs of tokens.
select
    f.example, f.kind, f.query_class, f.key_class, f.n_queries, f.n_keys, f.n_pairs, h.layer, h.head,
    f.abs_gradient[h.position] as abs_gradient, f.gradient_weight[h.position] as gradient_weight,
    f.abs_gradient_weight[h.position] as abs_gradient_weight, f.weight[h.position] as weight
from stored.gradient_facts as f
join stored.heads as h on h.kind = f.kind
