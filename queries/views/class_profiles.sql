-- One row for each head and class of examples: how a statistic of the head lies in that class.
select kind, layer, head, class, mean, d, n
from stored.class_profiles
