"""This file tests that tokens, their places and their special marks are those that the model is fed."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast
from transformers.tokenization_python import PythonBackend

from attnstore.capture.encode import Encoder, collate
from attnstore.capture.literal import literal
from attnstore.capture.model import load, load_encoder
from attnstore.errors import BadInput
from attnstore.text.encoded import Encoded

Tiny = Callable[[str], Path]
Make = Callable[[str], PreTrainedTokenizerFast]
ALL = ("wordpiece", "roberta", "gpt2", "unigram")
# What a corpus could hold of each tokenizer's special tokens.
TYPED = {
    "wordpiece": ["[SEP]", "[CLS]", "[PAD]", "[MASK]", "[UNK]"],
    "roberta": ["<s>", "</s>", "<pad>", "<mask>"],
    "gpt2": ["<|endoftext|>"],
    "unigram": ["</s>", "<pad>"],
}


@pytest.fixture(scope="module")
def encoders(tokenizer: Make) -> dict[str, Encoder]:
    return {name: Encoder(tokenizer(name)) for name in ALL}


def aligned(encoded: Encoded) -> bool:
    lengths = {
        len(encoded),
        *map(len, (encoded.texts, encoded.spans, encoded.parts, encoded.type_ids, encoded.special)),
    }
    return len(lengths) == 1


def test_a_text_is_put_between_its_special_tokens(encoders: dict[str, Encoder]) -> None:
    encoded = encoders["wordpiece"].encode("The cats")
    # Lower-cased, and "cats" is "cat" + "##s"; spans count characters of the text as typed.
    assert encoded.texts == ("[CLS]", "the", "cat", "##s", "[SEP]")
    assert encoded.spans == (None, (0, 3), (4, 7), (7, 8), None)
    assert encoded.parts == (None, 0, 0, 0, None)
    assert encoded.special == ("cls", None, None, None, "sep")
    assert encoded.type_ids == (0, 0, 0, 0, 0)
    assert encoded.ids[0] == 2
    assert encoded.ids[-1] == 3


def test_a_pair_has_true_or_zero_types_and_the_same_parts(encoders: dict[str, Encoder]) -> None:
    true = encoders["wordpiece"].encode("the cat", "a dog ran", part_ids="true")
    zeros = encoders["wordpiece"].encode("the cat", "a dog ran", part_ids="zeros")
    assert true.texts == ("[CLS]", "the", "cat", "[SEP]", "a", "dog", "ran", "[SEP]")
    assert true.type_ids == (0, 0, 0, 0, 1, 1, 1, 1)
    assert zeros.type_ids == (0,) * 8
    assert true.parts == zeros.parts == (None, 0, 0, None, 1, 1, 1, None)
    # Each part counts its own characters.
    assert true.spans[4:7] == ((0, 1), (2, 5), (6, 9))
    with pytest.raises(BadInput, match="part_ids = 'some'"):
        encoders["wordpiece"].encode("the cat", part_ids="some")


def test_an_empty_second_text_is_still_a_pair(encoders: dict[str, Encoder]) -> None:
    assert encoders["wordpiece"].encode("the cat", "").texts == ("[CLS]", "the", "cat", "[SEP]", "[SEP]")
    assert encoders["wordpiece"].encode("").special == ("cls", "sep")


@pytest.mark.parametrize("name", ALL)
def test_the_number_of_special_tokens_is_what_encoding_adds(encoders: dict[str, Encoder], name: str) -> None:
    encoder = encoders[name]
    one, two = encoder.encode("the cat sat"), encoder.encode("the cat sat", "a dog")
    assert encoder.n_special(False) == sum(mark is not None for mark in one.special)
    assert encoder.n_special(True) == sum(mark is not None for mark in two.special)
    assert len(two) == len(encoder.spans("the cat sat")) + len(encoder.spans("a dog")) + encoder.n_special(True)


def test_typed_special_tokens_are_ordinary_text(encoders: dict[str, Encoder]) -> None:
    encoded = encoders["wordpiece"].encode("cat [SEP] dog [MASK]", "[CLS]")
    # [CLS] cat [ sep ] dog [ mask ] [SEP] [ cls ] [SEP], the typed ones in small pieces.
    assert encoded.texts[:4] == ("[CLS]", "cat", "[", "s")
    assert [text for text, mark in zip(encoded.texts, encoded.special, strict=True) if mark] == [
        "[CLS]",
        "[SEP]",
        "[SEP]",
    ]
    assert encoded.ids.count(3) == 2
    assert encoded.ids.count(2) == 1
    assert 4 not in encoded.ids
    start, end = encoded.spans[2] or (0, 0)
    assert (start, end) == (4, 5)


def test_a_vocabulary_that_holds_its_special_tokens_as_pieces_does_not_find_them_in_text(tokenizer: Make) -> None:
    # Without care this Unigram vocabulary finds "</s>" (score 0, the best of all) in the text itself.
    careless = tokenizer("unigram").backend_tokenizer
    careless.encode_special_tokens = True
    assert 1 in careless.encode("cat</s>", add_special_tokens=False).ids
    encoded = Encoder(tokenizer("unigram")).encode("cat</s>")
    assert encoded.texts == ("\u2581cat", "<", "/", "s", ">", "</s>")
    assert encoded.special == (None, None, None, None, None, "eos")
    assert encoded.spans == ((0, 3), (3, 4), (4, 5), (5, 6), (6, 7), None)


def test_a_vocabulary_of_whole_words_takes_a_typed_special_token_as_unknown() -> None:
    words = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "C": 3, "O": 4, ">>": 5}
    inner = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    encoder = Encoder(
        PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    )
    encoded = encoder.encode("C [SEP] O N [UNK]", "O [CLS]")
    assert encoded.ids == (1, 3, 0, 4, 0, 0, 2, 4, 0, 2)
    assert encoded.special == ("cls", None, None, None, None, None, "sep", None, None, "sep")
    assert encoded.parts == (None, 0, 0, 0, 0, 0, None, 1, 1, None)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_typed_only_what_is_put_around_it_is_special(
    encoders: dict[str, Encoder], name: str, data: st.DataObject
) -> None:
    encoder = encoders[name]
    piece = st.one_of(st.sampled_from([*TYPED[name], "the cat", " ", "é", "日本"]), st.text(max_size=4))
    text, second = ("".join(data.draw(st.lists(piece, max_size=6))) for _ in range(2))
    encoded = encoder.encode(text, second)
    assert aligned(encoded)
    assert sum(mark is not None for mark in encoded.special) == encoder.n_special(True)
    for number, part in ((0, text), (1, second)):
        spans = [span for span, own in zip(encoded.spans, encoded.parts, strict=True) if own == number]
        assert spans == encoder.spans(part)
        starts = [span[0] for span in spans if span is not None]
        assert starts == sorted(starts)
        assert all(0 <= start <= end <= len(part) for start, end in spans if start is not None)
    never = {token for token, role in encoder._special.items() if token in encoder._never_typed}
    assert not [
        token for token, mark in zip(encoded.ids, encoded.special, strict=True) if mark is None and token in never
    ]


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40, deadline=None)
@given(text=st.text(alphabet="the cat sondégm.,'日 ", max_size=30), second=st.text(alphabet="dog bark", max_size=10))
def test_hiding_the_special_tokens_changes_nothing_for_plain_text(
    encoders: dict[str, Encoder], name: str, text: str, second: str
) -> None:
    encoder = encoders[name]
    plain = encoder._backend.encode(text, second, add_special_tokens=True)
    hidden = literal(encoder._backend, encoder._never_typed)
    roundabout = encoder._backend.post_process(
        hidden.encode(text, add_special_tokens=False), hidden.encode(second, add_special_tokens=False), True
    )
    for field in ("ids", "tokens", "offsets", "type_ids", "special_tokens_mask", "sequence_ids"):
        assert getattr(plain, field) == getattr(roundabout, field), field


def test_spans_count_characters_and_not_bytes(encoders: dict[str, Encoder]) -> None:
    text = "日本 café 🙂 cat"
    for name in ("wordpiece", "roberta", "gpt2"):
        encoded = encoders[name].encode(text)
        last = [span for span in encoded.spans if span is not None][-1]
        assert text[last[0] : last[1]].strip()[-1] == "t"
        assert last[1] == len(text)
    # Accents are stripped by the normaliser; the span is that of the accented letter: c a f é = 3 to 7.
    spans = encoders["wordpiece"].spans("日本 café")
    assert spans[:2] == [(0, 1), (1, 2)]
    assert spans[-1] == (6, 7)
    # One character of three bytes gives three byte-level tokens with the same span.
    assert encoders["gpt2"].spans("本") == [(0, 1)] * 3


def test_byte_level_spans_may_begin_with_the_blank_before_a_word(encoders: dict[str, Encoder]) -> None:
    encoded = encoders["gpt2"].encode("the cat")
    assert encoded.texts == ("the", "\u0120cat")
    assert encoded.spans == ((0, 3), (3, 7))
    assert encoded.special == (None, None)
    # RoBERTa's own post-processing trims it.
    assert encoders["roberta"].encode("the cat").spans == (None, (0, 3), (4, 7), None)


def test_a_token_with_several_roles_takes_the_first(encoders: dict[str, Encoder]) -> None:
    # <s> is [CLS] and the beginning, </s> is [SEP] and the end.
    assert encoders["roberta"].encode("the", "cat").special == ("cls", None, "sep", "sep", None, "sep")
    assert encoders["unigram"].encode("cat").special == (None, "eos")


def test_nothing_is_truncated_or_padded_even_if_the_tokenizer_says_so(tokenizer: Make) -> None:
    theirs = tokenizer("wordpiece")
    theirs.backend_tokenizer.enable_truncation(4)
    theirs.backend_tokenizer.enable_padding(length=16)
    encoder = Encoder(theirs)
    assert len(encoder.encode("the cat sat on a mat")) == 8
    assert len(encoder.spans("the cat sat on a mat")) == 6
    # The caller's tokenizer is left as it was.
    assert theirs.backend_tokenizer.truncation is not None
    assert theirs.backend_tokenizer.encode_special_tokens is False


def test_a_tokenizer_without_offsets_is_refused() -> None:
    class Slow(PythonBackend):  # type: ignore[misc]
        vocab_size = 1

        def get_vocab(self) -> dict[str, int]:
            return {"a": 0}

        def _convert_token_to_id(self, token: str) -> int:
            return 0

        def _convert_id_to_token(self, index: int) -> str:
            return "a"

    with pytest.raises(BadInput, match="character offsets"):
        Encoder(Slow())


def test_facts_name_the_tokenizer_and_its_files(tiny: Tiny) -> None:
    facts = load_encoder(str(tiny("bert"))).facts
    assert int(facts["vocabulary"]) > 100
    assert facts["padding_side"] == "right"
    assert {name for name in facts if name.startswith("sha256:")} == {
        "sha256:tokenizer.json",
        "sha256:tokenizer_config.json",
    }


def test_models_without_token_types_are_fed_none(tiny: Tiny) -> None:
    encoder = load_encoder(str(tiny("roberta")))
    assert encoder.encode("the cat", "a dog").type_ids == (0,) * len(encoder.encode("the cat", "a dog"))
    # XLNet tells them apart without a table: its tokenizer's types are fed as they are.
    assert max(load_encoder(str(tiny("xlnet"))).encode("the cat", "a dog").type_ids) == 1


def test_a_type_that_the_model_does_not_have_is_refused(tokenizer: Make) -> None:
    theirs = tokenizer("wordpiece")
    theirs.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:2 $A", pair="[CLS]:2 $A $B:1", special_tokens=[("[CLS]", 2)]
    )
    encoder = Encoder(theirs, n_types=2)
    with pytest.raises(BadInput, match="token type 2; expected types below 2"):
        encoder.encode("the cat", "a dog")
    assert encoder.encode("the cat", "a dog", part_ids="zeros").type_ids == (0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("family", "start", "fed"),
    [
        # Labels: the cat </s>. T5 starts with its padding token.
        ("t5", "<pad>", ("<pad>", "\u2581the", "\u2581cat")),
        # Labels: <s> the cat </s>. BART starts with </s>, as its configuration says.
        ("bart", "</s>", ("</s>", "<s>", "the", "\u0120cat")),
        # mBART moves the last label to the front: here </s>, in real ones the language.
        ("mbart", "</s>", ("</s>", "<s>", "the", "\u0120cat")),
    ],
)
def test_targets_are_the_tokens_that_the_decoder_is_fed(
    tiny: Tiny, family: str, start: str, fed: tuple[str, ...]
) -> None:
    encoder = load_encoder(str(tiny(family)))
    encoded = encoder.encode_target("the cat")
    assert aligned(encoded)
    assert encoded.texts == fed
    assert encoded.texts[0] == start
    assert encoded.special[0] == "bos"
    words = [span for span in encoded.spans if span is not None]
    assert ["the cat"[begin:end].strip() for begin, end in words] == ["the", "cat"]
    # The library's own shift of the same labels.
    model = load(str(tiny(family))).model
    labels = torch.tensor([encoder.encode("the cat").ids])
    bart = torch.cat([torch.tensor([[2]]), labels[:, :-1]], dim=1)
    expected = model._shift_right(labels) if family == "t5" else bart
    assert torch.tensor([encoded.ids]).equal(expected)


def test_a_model_without_a_decoder_has_no_target(tiny: Tiny) -> None:
    for family in ("bert", "gpt2", "t5_encoder"):
        with pytest.raises(BadInput, match="no decoder"):
            load_encoder(str(tiny(family))).encode_target("the cat")


def test_half_a_surrogate_pair_is_refused(encoders: dict[str, Encoder]) -> None:
    for call in (encoders["gpt2"].encode, encoders["gpt2"].spans):
        with pytest.raises(BadInput, match="half of a surrogate pair at character 4"):
            call("the \ud83d")


def test_a_batch_is_padded_on_the_right(encoders: dict[str, Encoder]) -> None:
    encoder = encoders["wordpiece"]
    batch = collate([encoder.encode("the"), encoder.encode("the cat", "a dog")], None, encoder.pad_id)
    # the = 5, cat = 6, a = 9, dog = 11 in the order of WORDS after the five special tokens.
    assert batch["input_ids"].tolist() == [[2, 5, 3, 0, 0, 0, 0], [2, 5, 6, 3, 9, 11, 3]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1]]
    assert batch["token_type_ids"].tolist() == [[0] * 7, [0, 0, 0, 0, 1, 1, 1]]
    assert set(batch) == {"input_ids", "attention_mask", "token_type_ids"}


def test_targets_are_padded_by_themselves(tiny: Tiny) -> None:
    encoder = load_encoder(str(tiny("t5")))
    sources = [encoder.encode("the cat sat on a mat"), encoder.encode("a dog")]
    targets = [encoder.encode_target("the"), encoder.encode_target("the cat sat")]
    batch = collate(sources, targets, encoder.pad_id)
    assert batch["input_ids"].shape == (2, 7)
    assert batch["decoder_input_ids"].shape == (2, 4)
    assert batch["decoder_attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    with pytest.raises(BadInput, match="1 targets; expected 2"):
        collate(sources, targets[:1], encoder.pad_id)


def test_a_batch_without_tokens_is_refused(encoders: dict[str, Encoder]) -> None:
    for nothing in ([], [encoders["gpt2"].encode("")]):
        with pytest.raises(BadInput, match="no tokens"):
            collate(nothing, None, 0)
