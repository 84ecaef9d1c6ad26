-- One row for each example and head: how many words its maximum spanning tree attaches right.
select example, kind, layer, head, n, correct, undirected_correct
from stored.tree_facts
