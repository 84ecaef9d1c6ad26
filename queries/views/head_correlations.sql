-- One row for each pair of numbers of a head: how far one goes with the other over the heads.
select kind, x, y, spearman, low, high, pearson, n
from stored.head_correlations
