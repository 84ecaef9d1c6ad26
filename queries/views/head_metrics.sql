-- One row for each example, head and metric: its sum over query rows, and how many rows have a value.
select
    example, kind, layer, head,
    unnest(['entropy', 'confidence', 'cls', 'sep', 'previous', 'next', 'self', 'distance']) as metric,
    unnest([entropy_sum, max_sum, cls_sum, sep_sum, previous_sum, next_sum, self_sum, distance_sum]) as total,
    unnest([
        n_queries, n_queries, n_queries, n_queries, n_queries - 1, n_queries - 1, n_queries, n_queries
    ]) as n_rows
from head_facts
