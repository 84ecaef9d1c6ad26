-- One row for each token of each example, special tokens included; `side` is source or target.
select
    example, side, token, text, token_id, word, part, special, punct, start_char, end_char, type_id,
    "row", col, trigger
from stored.tokens
