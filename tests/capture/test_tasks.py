"""Tests of how tasks score a model's output: losses by plain sums over log-softmax, predictions by hand."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from attnstore.capture.tasks import CausalLM, Classification, Item, MaskedLM, Regression
from attnstore.errors import BadInput
from attnstore.text.encoded import Encoded


def item(number: int, ids: list[int], label: str | None = None) -> Item:
    """An example whose first and last token are special."""
    special = ["cls", *[None] * (len(ids) - 2), "sep"]
    nothing = (None,) * len(ids)
    encoded = Encoded(tuple(ids), ("x",) * len(ids), nothing, nothing, (0,) * len(ids), tuple(special))
    return Item(number, f"e{number}", label, "text", None, encoded)


def batch(*rows: list[int]) -> tuple[list[Item], dict[str, torch.Tensor]]:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return [item(number, row) for number, row in enumerate(rows)], {"input_ids": ids, "attention_mask": mask}


def output(*shape: int) -> Any:
    return SimpleNamespace(logits=torch.randn(shape, generator=torch.Generator().manual_seed(3)))


def surprise(logits: torch.Tensor, gold: int) -> float:
    """-log of the softmax at `gold`, written out."""
    powers = [2.718281828459045 ** float(one) for one in logits]
    return -float(torch.log(torch.tensor(powers[gold] / sum(powers))))


def test_a_classifier_is_scored_by_the_log_of_the_right_class() -> None:
    found, task = output(3, 2), Classification(["bad", "good"])
    items = [item(0, [1, 5, 2], "good"), item(1, [1, 5, 2], None), item(2, [1, 5, 2], "0")]
    scored = task.score(found, items, {})
    assert scored.loss[0].item() == pytest.approx(surprise(found.logits[0], 1), abs=1e-5)
    assert scored.loss[1].isnan()
    assert scored.loss[2].item() == pytest.approx(surprise(found.logits[2], 0), abs=1e-5)
    assert scored.n.tolist() == [1, 0, 1]
    assert list(scored.predicted) == [["bad", "good"][int(row[1] > row[0])] for row in found.logits]


@pytest.mark.parametrize(("label", "message"), [("fair", "the label 'fair'"), ("2", "a number below 2")])
def test_a_label_that_is_no_class_is_refused(label: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Classification(["bad", "good"]).score(output(1, 2), [item(0, [1, 2], label)], {})


def test_a_model_with_another_number_of_classes_is_refused() -> None:
    with pytest.raises(BadInput, match=r"3 classes; expected the 2 of task\.labels"):
        Classification(["bad", "good"]).score(output(1, 3), [item(0, [1, 2], "bad")], {})


def test_a_regression_is_scored_by_the_square_of_the_difference() -> None:
    found = output(3, 1)
    scored = Regression().score(found, [item(0, [1, 2], "0.5"), item(1, [1, 2]), item(2, [1, 2], "-2")], {})
    assert scored.loss[0].item() == pytest.approx((float(found.logits[0]) - 0.5) ** 2, rel=1e-5)
    assert scored.loss[2].item() == pytest.approx((float(found.logits[2]) + 2) ** 2, rel=1e-5)
    assert scored.n.tolist() == [1, 0, 1]
    for label in ("warm", "nan", "inf"):
        with pytest.raises(BadInput, match=f"'{label}'; expected a number"):
            Regression().gold(item(0, [1, 2], label))


def test_a_classifier_that_gives_no_numbers_predicts_nothing() -> None:
    found = output(2, 2)
    found.logits[0, 1] = float("nan")
    scored = Classification(["bad", "good"]).score(found, [item(0, [1, 2], "good"), item(1, [1, 2], "good")], {})
    assert next(iter(scored.predicted)) is None
    assert scored.n.tolist() == [0, 1]


def test_a_masked_language_model_answers_for_every_plain_token_and_no_other() -> None:
    items, inputs = batch([1, 7, 8, 9, 2], [1, 5, 2])
    task, found = MaskedLM("all", 3, 12, 0), output(2, 5, 12)
    assert task.inputs(items, inputs)["input_ids"] is inputs["input_ids"]
    scored = task.score(found, items, inputs)
    for row, ids in enumerate(([7, 8, 9], [5])):
        wanted = [surprise(found.logits[row, place], gold) for place, gold in enumerate(ids, start=1)]
        assert scored.loss[row].item() == pytest.approx(sum(wanted) / len(wanted), abs=1e-5)
    assert scored.n.tolist() == [3, 1]


def test_fifteen_in_a_hundred_tokens_are_masked_and_the_seed_and_the_example_say_which() -> None:
    ids = [1, *range(10, 210), 2]
    items, inputs = batch(ids, ids)
    task = MaskedLM("bert15", 3, 300, seed=5)
    fed = task.inputs(items, inputs)["input_ids"]
    changed = (fed != inputs["input_ids"]).sum(1)
    assert 20 <= changed.min() <= changed.max() <= 30  # of 30 targets a tenth stays as it was
    assert ((fed == 3).sum(1) >= 15).all()
    assert not torch.equal(fed[0], fed[1])
    assert torch.equal(fed, task.inputs(items, inputs)["input_ids"])
    assert not torch.equal(fed, MaskedLM("bert15", 3, 300, seed=6).inputs(items, inputs)["input_ids"])
    scored = task.score(output(2, len(ids), 300), items, {**inputs, "input_ids": fed})
    assert scored.n.tolist() == [30, 30]


def test_masking_without_a_mask_token_is_refused() -> None:
    with pytest.raises(BadInput, match="without a mask token"):
        MaskedLM("bert15", None, 300, 0)


def test_a_causal_model_is_scored_on_each_token_from_those_before_it() -> None:
    items, inputs = batch([1, 7, 8, 2], [1, 5])
    found = output(2, 4, 12)
    scored = CausalLM().score(found, items, inputs)
    for row, ids in enumerate(([7, 8, 2], [5])):
        wanted = [surprise(found.logits[row, place], gold) for place, gold in enumerate(ids)]
        assert scored.loss[row].item() == pytest.approx(sum(wanted) / len(wanted), abs=1e-5)
    assert scored.n.tolist() == [3, 1]


def test_an_example_of_one_token_has_no_target_for_a_causal_model() -> None:
    items, inputs = batch([1, 7, 8], [5])
    scored = CausalLM().score(output(2, 3, 12), items, inputs)
    assert scored.loss[1].isnan()
    assert list(scored.score)[1] is None
