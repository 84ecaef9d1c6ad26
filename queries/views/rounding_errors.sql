-- One row for each head: how far the largest stored weights of its rows are from their exact facts.
select kind, layer, head, largest_difference, mean_difference, n
from stored.rounding_errors
