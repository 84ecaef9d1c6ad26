-- One row for each pair of heads of a layer: how far they write in the same directions.
select kind, layer, head_a, head_b, cosine_smallest, cosine_mean, cosine_largest, overlap, random
from stored.head_overlaps
