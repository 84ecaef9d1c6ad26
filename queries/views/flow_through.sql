-- One row for each output and input token of one example: the maximum flow between them.
select example, kind, query, key, weight
from stored.flow_through
