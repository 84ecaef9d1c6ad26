-- One row for each example: the divergence between every pair of heads as a list, the upper triangle row by row.
select example, kind, n_rows, js
from stored.head_distances
