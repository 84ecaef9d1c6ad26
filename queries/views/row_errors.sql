-- One row for each head: how far its stored rows are from summing to 1.
select kind, layer, head, largest_error, mean_error, n
from stored.row_errors
