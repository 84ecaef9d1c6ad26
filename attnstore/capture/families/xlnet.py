"""This file declares XLNet, whose attention modules put the batch last."""

from attnstore.capture.families.family import Family

# The module returns [query, key, batch, head]. Without a permutation mask every token sees every other.
# Token types are compared and not looked up; its tokenizer gives 0, 1 and, for the class token, 2.
XLNET = Family(("xlnet",), axes=(2, 3, 0, 1), causal=False, token_types=3)
