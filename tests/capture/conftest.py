"""Fixtures of capture: tiny random models and tokenizers, saved as folders; nothing is downloaded."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.utils import logging

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "barked", "at", "night", "river", "ran", "down", "##s", "##ing"]
CORPUS = ["the cat sat on a mat", "a dog barked at night", "the river ran down", "we walk along the river at night"]
SIZES: dict[str, Any] = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
}
T5 = {
    "vocab_size": 400,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "is_encoder_decoder": True,
}
BART: dict[str, Any] = {
    "vocab_size": 400,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 80,
}
GPT2 = {"vocab_size": 400, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 80}
DEBERTA = {**SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0}

# Family: configuration class, its arguments, model class, tokenizer.
FAMILIES: dict[str, tuple[str, dict[str, Any], str, str | None]] = {
    "bert": ("BertConfig", SIZES, "BertModel", "wordpiece"),
    "bert_decoder": ("BertConfig", {**SIZES, "is_decoder": True}, "BertModel", "wordpiece"),
    "albert": ("AlbertConfig", {**SIZES, "embedding_size": 16, "num_hidden_layers": 3}, "AlbertModel", "wordpiece"),
    "roberta": ("RobertaConfig", {**SIZES, "type_vocab_size": 1}, "RobertaModel", "roberta"),
    "distilbert": (
        "DistilBertConfig",
        {"vocab_size": 400, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 80},
        "DistilBertModel",
        "wordpiece",
    ),
    "electra": ("ElectraConfig", {**SIZES, "embedding_size": 16}, "ElectraModel", "wordpiece"),
    "gpt2": ("GPT2Config", GPT2, "GPT2Model", "gpt2"),
    "llama": ("LlamaConfig", {**SIZES, "num_key_value_heads": 2}, "LlamaModel", "gpt2"),
    "gpt_oss": (
        "GptOssConfig",
        {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1},
        "GptOssModel",
        "gpt2",
    ),
    "t5": ("T5Config", {**T5, "decoder_start_token_id": 0}, "T5Model", "unigram"),
    "t5_encoder": ("T5Config", T5, "T5EncoderModel", "unigram"),
    "bart": ("BartConfig", {**BART, "decoder_start_token_id": 2}, "BartModel", "roberta"),
    "mbart": ("MBartConfig", BART, "MBartModel", "roberta"),
    "vit": ("ViTConfig", {**SIZES, "image_size": 16, "patch_size": 4, "num_channels": 3}, "ViTModel", None),
    "xglm": (
        "XGLMConfig",
        {"vocab_size": 400, "d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64},
        "XGLMModel",
        "gpt2",
    ),
    "deberta": ("DebertaConfig", DEBERTA, "DebertaModel", "wordpiece"),
    "deberta_v2": ("DebertaV2Config", DEBERTA, "DebertaV2Model", "wordpiece"),
    "mpnet": ("MPNetConfig", SIZES, "MPNetModel", "roberta"),
    "xlnet": (
        "XLNetConfig",
        {"vocab_size": 400, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64},
        "XLNetModel",
        "wordpiece",
    ),
    "bloom": ("BloomConfig", {"vocab_size": 400, "hidden_size": 32, "n_layer": 2, "n_head": 4}, "BloomModel", "gpt2"),
    "falcon": (
        "FalconConfig",
        {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
        "FalconModel",
        "gpt2",
    ),
    "gptj": (
        "GPTJConfig",
        {"vocab_size": 400, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 80, "rotary_dim": 4},
        "GPTJModel",
        "gpt2",
    ),
    # Every other head is a convolution.
    "convbert": (
        "ConvBertConfig",
        {**SIZES, "num_attention_heads": 8, "embedding_size": 16},
        "ConvBertModel",
        "wordpiece",
    ),
    "modernbert": ("ModernBertConfig", {**SIZES, "pad_token_id": 0}, "ModernBertModel", "wordpiece"),
    "openai_gpt": ("OpenAIGPTConfig", GPT2, "OpenAIGPTModel", "gpt2"),
    "longformer": ("LongformerConfig", {**SIZES, "attention_window": 8}, "LongformerModel", "roberta"),
    "segformer": ("SegformerConfig", {"image_size": 16}, "SegformerModel", None),
    "wav2vec": ("Wav2Vec2Config", SIZES, "Wav2Vec2Model", None),
}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """The machine is shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def wordpiece() -> PreTrainedTokenizerFast:
    """Lower-casing WordPiece in BERT's manner: [CLS] a [SEP] b [SEP], types 0 and 1."""
    letters = [chr(code) for code in range(33, 127)] + ["é", "ß", "日", "本"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {piece: token for token, piece in enumerate(dict.fromkeys(pieces))}
    inner = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _byte_level(special: list[str]) -> Tokenizer:
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=380, initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    inner.train_from_iterator(CORPUS * 4, trainer)
    return inner


def roberta() -> PreTrainedTokenizerFast:
    """Byte-level in RoBERTa's manner: <s> a </s></s> b </s>, spans trimmed."""
    inner = _byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def gpt2() -> PreTrainedTokenizerFast:
    """Byte-level in GPT-2's manner: nothing put around a text, spans with the blank before a word."""
    inner = _byte_level(["<|endoftext|>"])
    inner.post_processor = processors.ByteLevel(trim_offsets=False)
    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=end, eos_token=end, unk_token=end)


def unigram() -> PreTrainedTokenizerFast:
    """Unigram in T5's manner: a </s>; its vocabulary holds the special tokens as pieces that text can match."""
    letters = [(chr(code), -8.0) for code in range(33, 127)]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -3.0), *letters]
    pieces += [(f"\u2581{word}", -2.0) for word in WORDS if not word.startswith("#")]
    inner = Tokenizer(models.Unigram(pieces, unk_id=2))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


TOKENIZERS = {"wordpiece": wordpiece, "roberta": roberta, "gpt2": gpt2, "unigram": unigram}


@pytest.fixture(scope="session")
def tokenizer() -> Callable[[str], PreTrainedTokenizerFast]:
    """Makes one of the tokenizers wordpiece, roberta, gpt2, unigram."""
    return lambda name: TOKENIZERS[name]()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny random model of a family, made at its first use."""
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            config_class, sizes, model_class, name = FAMILIES[family]
            place = tmp_path_factory.mktemp(family)
            special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2} if name == "roberta" else {}
            torch.manual_seed(len(made))
            config = getattr(transformers, config_class)(**{**special, **sizes})
            model = getattr(transformers, model_class)._from_config(config, attn_implementation="eager")
            with torch.no_grad():
                for weight in model.parameters():
                    # The usual small numbers give nearly uniform maps, on which many mistakes do not show.
                    if weight.dim() > 1:
                        weight.normal_(0.0, 0.3)
            logging.disable_progress_bar()
            model.save_pretrained(place)
            logging.enable_progress_bar()
            if name is not None:
                TOKENIZERS[name]().save_pretrained(place)
            made[family] = place
        return made[family]

    return folder
