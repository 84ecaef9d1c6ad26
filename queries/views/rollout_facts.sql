-- One row for each output and input token of one example: how much of the one reaches the other.
select example, kind, query, key, weight
from stored.rollout_facts
