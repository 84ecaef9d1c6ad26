-- One row for each annotated pair of word spans, ends exclusive; `core` where the corpus tells core elements from others.
select
    example, link, relation, source_start_word, source_end_word, target_start_word, target_end_word, core
from stored.links
