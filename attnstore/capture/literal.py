"""This file rebuilds a tokenizer so that no typed text can become one of its special tokens."""

import json
from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer


def literal(backend: Tokenizer, specials: Collection[int]) -> Tokenizer:
    """A tokenizer that splits as `backend` does but whose special tokens have names that nobody types.

    `encode_special_tokens` keeps typed "[SEP]" from being cut out as the special token, but where the pieces of the
    vocabulary hold it (Unigram, whole words) the text still finds it there. Ids stay as they are. The unknown token
    keeps its name: text may become unknown.
    """
    layout = json.loads(backend.to_str())
    model = layout["model"]
    hidden = {token: _hidden(token) for token in specials}
    for added in layout["added_tokens"]:
        if added["id"] in hidden:
            added["content"], added["special"] = hidden[added["id"]], True
    vocabulary: Any = model["vocab"]
    if isinstance(vocabulary, list):
        model["vocab"] = [[hidden.get(place, piece), score] for place, (piece, score) in enumerate(vocabulary)]
    else:
        kept = _merged(model) | {model.get("unk_token")}
        model["vocab"] = {
            piece if piece in kept else hidden.get(token, piece): token for piece, token in vocabulary.items()
        }
    # The original one is applied afterwards; this one would look for the special tokens by name.
    layout["post_processor"] = None
    rebuilt = Tokenizer.from_str(json.dumps(layout))
    rebuilt.encode_special_tokens = True
    return rebuilt


def _hidden(token: int) -> str:
    return f"\U0010fffe special {token} \U0010fffe"


def _merged(model: dict[str, Any]) -> set[str]:
    """Pieces that merges name; renaming one would leave a merge without its piece."""
    pairs = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model.get("merges") or ()]
    return {piece for left, right in pairs for piece in (left, right, left + right)}
