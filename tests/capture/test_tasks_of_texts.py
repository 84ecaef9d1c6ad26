"""Tests of similarity, answers to questions, translation and functions of one's own, by plain sums and by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from attnstore.capture.answering import Answering, shared_words  # noqa: E402
from attnstore.capture.encode import Encoder, collate  # noqa: E402
from attnstore.capture.instrument import Instrument  # noqa: E402
from attnstore.capture.own_task import OwnTask, find_function  # noqa: E402
from attnstore.capture.similarity import Similarity  # noqa: E402
from attnstore.capture.task_model import load_for, task_of  # noqa: E402
from attnstore.capture.tasks import Item, Translation, scored_pass  # noqa: E402
from attnstore.errors import BadInput  # noqa: E402
from tests.capture.conftest import roberta, wordpiece  # noqa: E402
from tests.job.task_models import task_model  # noqa: E402


def pair(encoder: Encoder, first: str, second: str | None, label: str | None = None, number: int = 0) -> Item:
    return Item(number, f"e{number}", label, first, second, encoder.encode(first, second))


@pytest.mark.parametrize(("tokenizer", "model"), [(wordpiece, "bert"), (roberta, "roberta")])
def test_the_texts_of_a_pair_are_fed_apart_as_the_tokenizer_feeds_a_single_text(
    tokenizer: Any, model: str, tiny: Any
) -> None:
    encoder = Encoder(tokenizer())
    items = [
        pair(encoder, "the cat sat", "a dog", "0.5"),
        pair(encoder, "a mat", "the river ran down", None, 1),
    ]
    task = Similarity(encoder.pad_id)
    batch = collate([item.source for item in items], None, encoder.pad_id)
    fed = task.inputs(items, batch)
    alone = [encoder.encode(text) for text in ("the cat sat", "a mat", "a dog", "the river ran down")]
    assert [row[mask.bool()].tolist() for row, mask in zip(fed["input_ids"], fed["attention_mask"], strict=True)] == [
        list(one.ids) for one in alone
    ]
    plain = transformers.AutoModel.from_pretrained(tiny(model)).eval()
    with torch.inference_mode():
        output = plain(input_ids=fed["input_ids"], attention_mask=fed["attention_mask"])
        means = [plain(input_ids=torch.tensor([one.ids])).last_hidden_state[0].mean(0) for one in alone]
    scored = task.score(output, items, fed)
    for number in range(2):
        one, other = means[number], means[number + 2]
        cosine = float(one @ other / (one.norm() * other.norm()))
        assert scored.score[number] == pytest.approx(cosine, abs=1e-5)
        if number == 0:
            assert scored.loss[0].item() == pytest.approx((cosine - 0.5) ** 2, abs=1e-5)
    assert scored.n.tolist() == [1, 0]


def test_similarity_needs_two_texts() -> None:
    encoder = Encoder(wordpiece())
    item = pair(encoder, "the cat", None)
    with pytest.raises(BadInput, match="two texts"):
        Similarity(0).inputs([item], collate([item.source], None, 0))


def answered(starts: dict[int, float], ends: dict[int, float], tokens: int) -> Any:
    """Logits of 0 but at these tokens, for two equal rows of which the second is padded by two."""
    logits = [torch.zeros(2, tokens + 2) for _ in range(2)]
    for row, own in zip(logits, (starts, ends), strict=True):
        for place, value in own.items():
            row[:, place] = value
    return SimpleNamespace(start_logits=logits[0], end_logits=logits[1])


def test_an_answer_is_the_best_span_of_the_second_text_and_its_loss_that_of_both_ends() -> None:
    encoder = Encoder(wordpiece())
    # [CLS] the cat [SEP] a dog ran down [SEP]: the context is tokens 4 to 7
    item = pair(encoder, "the cat", "a dog ran down", "dog ran")
    tokens = len(item.source)
    assert item.source.texts[4:8] == ("a", "dog", "ran", "down")
    inputs = {"attention_mask": torch.tensor([[1] * tokens + [0, 0]] * 2)}
    # The largest logits lie in the question, after the start, and before the end.
    output = answered({1: 9.0, 5: 2.0, 7: 3.0}, {2: 9.0, 4: 3.0, 6: 2.5}, tokens)
    scored = Answering().score(output, [item, item], inputs)
    assert list(scored.predicted) == ["dog ran"] * 2
    assert list(scored.score) == [1.0] * 2
    start, end = output.start_logits[0, :tokens], output.end_logits[0, :tokens]  # padding takes no part
    wanted = -(start.log_softmax(0)[5] + end.log_softmax(0)[6]) / 2
    assert scored.loss.tolist() == pytest.approx([wanted.item()] * 2, abs=1e-5)
    missing = [pair(encoder, "the cat", "a dog ran down", label) for label in (None, "night")]
    scored = Answering().score(output, missing, inputs)
    assert scored.loss.isnan().all()
    assert (scored.n.tolist(), list(scored.score)) == ([0, 0], [None, 0.0])


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("The cat!", "cat", 1.0),
        ("a cat sat", "cat ran", 0.5),
        ("dog dog", "dog", 2 / 3),
        ("night", "", 0.0),
        ("", "", 1),
    ],
)
def test_words_of_answers_are_compared_as_bags_without_articles_and_punctuation(
    one: str, other: str, wanted: float
) -> None:
    assert shared_words(one, other) == pytest.approx(wanted)


@pytest.mark.parametrize("family", ["t5", "bart"])
def test_a_translation_has_the_loss_that_the_library_gives_to_labels_with_their_end(
    family: str, tmp_path: Path
) -> None:
    folder = task_model(tmp_path, family, "translation")
    captor = load_for("translation", str(folder), takes="text")
    task = task_of("translation", captor, labels=[], targets="all", seed=0)
    assert isinstance(task, Translation)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [("the cat sat", "a dog"), ("a mat", "the river ran down")]
    encoder = captor.encoder
    items = [
        Item(number, "e", None, text, None, encoder.encode(text), encoder.encode_target(target))
        for number, (text, target) in enumerate(texts)
    ]
    inputs = collate([item.source for item in items], [item.target for item in items if item.target], encoder.pad_id)
    inputs.pop("token_type_ids")
    scored = scored_pass(Instrument(captor), task, items, task.inputs(items, inputs))
    for number, (text, target) in enumerate(texts):
        labels = tokenizer(target, return_tensors="pt").input_ids
        assert labels[0, -1] == tokenizer.eos_token_id
        with torch.inference_mode():
            alone = captor.model(**tokenizer(text, return_tensors="pt"), labels=labels)
        assert scored.loss[number].item() == pytest.approx(alone.loss.item(), abs=1e-4)
        assert scored.n[number] == labels.shape[1]


def test_a_function_that_gives_no_number_for_each_item_is_refused() -> None:
    encoder = Encoder(wordpiece())
    items = [pair(encoder, "the cat", None), pair(encoder, "a dog", None, number=1)]
    scored = OwnTask("m:f", lambda *_: torch.tensor([1.0, float("nan")])).run(torch.nn.Identity(), items, {})
    assert scored.loss.isnan().all()
    assert (scored.n.tolist(), scored.score) == ([1, 0], [1.0, None])
    for wrong in ([1.0], ["a", "b"]):
        with pytest.raises(BadInput, match="a number for each of 2 items"):
            OwnTask("m:f", lambda *_, wrong=wrong: wrong).run(torch.nn.Identity(), items, {})
    with pytest.raises(BadInput, match="a task with a loss"):
        OwnTask("m:f", len).score(None, items, {})


def test_a_function_is_found_by_module_and_name(tmp_path: Path) -> None:
    assert find_function("math:sqrt", tmp_path)(9) == 3
    with pytest.raises(BadInput, match="no function 'nothing' in math"):
        find_function("math:nothing", tmp_path)
