-- One row for each word, with its parse; `governor` is the word it depends on, null for a root.
select
    example, side, word, form, lemma, upos, xpos, governor, deprel, derived, sentence, start_char, end_char,
    n_tokens, aligned, part
from stored.words
