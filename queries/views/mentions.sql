-- One row for each mention of an entity; mentions of one `cluster` mean the same.
select example, mention, cluster, start_word, end_word, head_word, type
from stored.mentions
