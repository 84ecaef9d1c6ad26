-- Which cluster each head falls into when the dendrogram of clusters/linkage is cut into `clusters` parts; 0 is largest.
--
-- Of clusters of one size, the one with the first head comes first. Needs the extra `analysis`.
-- reads:   head_clusters(eps=$eps, sampled=$sampled, method=$method, root=$root, clusters=$clusters)
-- params:  kind text = null, eps real = 0.001, sampled integer = null,
--          method text in (average, single, complete, weighted, ward) = average, root boolean = false,
--          clusters integer = 8
-- returns: layer, head, cluster, n_heads [in the cluster]
-- source:  clustering of heads after Clark et al. 2019, section 6
-- paint:   cluster
select layer, head, cluster, count(*) over (partition by cluster) as n_heads
from head_clusters
where kind = $kind
order by layer, head
