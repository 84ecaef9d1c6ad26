-- One row for each example and head: sums over its query tokens, and the counts to divide them by.
select
    example, kind, layer, head, n_queries, n_keys, n_cls, n_sep, self_sum, next_sum, previous_sum, cls_sum,
    sep_sum, punct_sum, sep_sep_sum, rest_sep_sum, distance_sum, entropy_sum, entropy_exact_sum,
    entropy_normalised_sum, n_normalised, log_keys_sum, cls_entropy_sum, cls_entropy_exact_sum, max_sum,
    max_drop_keys_sum, max_drop_both_sum, n_drop_both, max_drop_renormalised_sum
from stored.head_facts
