-- One row for each pair of heads of two layers and relation: how much the later reads of what the earlier writes.
select relation, kind, layer_a, head_a, layer_b, head_b, score, random, approximate, folded
from stored.compositions
