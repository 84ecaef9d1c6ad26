-- One row for each annotated pair of word spans, ends exclusive.
select
    example, link, relation, source_start_word, source_end_word, target_start_word, target_end_word
from stored.links
