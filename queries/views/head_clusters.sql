-- One row for each head: the cluster that it falls into.
select kind, layer, head, cluster
from stored.head_clusters
