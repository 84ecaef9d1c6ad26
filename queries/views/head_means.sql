-- One row for each head: what a row of it does on average, each example counting the same.
--
-- next, previous: weight on the neighbours, by the rows that have one; next_clark, previous_clark: by all rows.
select
    kind, layer, head,
    avg(self_sum / n_queries) as self,
    avg(next_sum / nullif(n_queries - 1, 0)) as next,
    avg(previous_sum / nullif(n_queries - 1, 0)) as previous,
    avg(next_sum / n_queries) as next_clark,
    avg(previous_sum / n_queries) as previous_clark,
    avg(cls_sum / n_queries) as cls,
    avg(sep_sum / n_queries) as sep,
    avg(punct_sum / n_queries) as punct,
    avg(distance_sum / n_queries) as distance_tokens,
    avg(entropy_sum / n_queries) as entropy_nats,
    avg(log_keys_sum / n_queries) as uniform_nats,
    avg(max_sum / n_queries) as confidence,
    count(*) as n
from head_facts
group by kind, layer, head
