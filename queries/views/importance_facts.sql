-- One row for each example and head: how the loss changes to first order with a gate on the head's output.
select example, kind, layer, head, importance, importance_abs_tokens, n_tokens
from stored.importance_facts
