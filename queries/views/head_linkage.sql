-- One row for each merge of a hierarchical clustering of heads.
select kind, step, a, b, distance, n_heads
from stored.head_linkage
