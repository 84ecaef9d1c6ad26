-- One row for each example and head: the token that most queries weigh most, and the weight on it and on a trigger.
select f.example, f.kind, f.layer, f.head, f.n_queries, f.focus, f.focusing, f.focus_sum, f.trigger_sum, h.queries as side
from stored.focus_facts as f
join stored.heads as h using (kind, layer, head)
