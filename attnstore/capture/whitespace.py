"""This file makes a tokenizer that looks up whatever stands between blanks as one token."""

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast


def whole_pieces(tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
    """A tokenizer of the same vocabulary and special tokens that splits at blanks only, and does not lower-case.

    What is not in the vocabulary becomes the unknown token.
    """
    inner = Tokenizer(WordLevel(tokenizer.get_vocab(), unk_token=str(tokenizer.unk_token)))
    inner.pre_tokenizer = WhitespaceSplit()
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and backend.post_processor is not None:
        inner.post_processor = backend.post_processor
    whole: PreTrainedTokenizerBase = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=inner, **tokenizer.special_tokens_map
    )
    whole.model_input_names = tokenizer.model_input_names
    return whole
