-- The value of each metric of the task over all examples, for each set of heads that was switched off.
select task, metric, intervention, head_set, value, n, seed
from stored.head_scores
