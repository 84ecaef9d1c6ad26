-- One row for each example and head: how far its attention between words follows pairs with a property.
select example, kind, layer, head, mass, total, edges, aligned_edges, n_property, n_pairs
from stored.alignment_facts
