"""This file scores a model that points at the answer to a question in a text."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attnstore.capture.instrument import Inputs
from attnstore.capture.tasks import Item, Scored

LONGEST = 30
"""Tokens of the longest answer."""


class Answering:
    """The text is a question, the second text where its answer stands, the label the answer.

    The loss is the mean of those of the answer's first and last token where it first stands; an answer that does not
    stand in the text has none. The score is the F1 of the words of both answers (SQuAD).
    """

    needs_labels = True

    def gold(self, item: Item) -> str | None:
        return item.label

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        return inputs

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        is_padding = ~inputs["attention_mask"].bool()
        ends: list[Tensor] = [
            logits.masked_fill(is_padding, -torch.inf) for logits in (output.start_logits, output.end_logits)
        ]
        spans = [_span(item) for item in batch]
        loss = torch.zeros(len(batch), device=is_padding.device)
        for place, logits in enumerate(ends):
            gold = torch.tensor([-100 if span is None else span[place] for span in spans], device=logits.device)
            loss = loss + functional.cross_entropy(logits, gold, reduction="none", ignore_index=-100) / 2
        has_answer = torch.tensor([span is not None for span in spans], device=loss.device)
        found = [
            _answer(item, first, last)
            for item, first, last in zip(batch, *(logits.detach().cpu() for logits in ends), strict=True)
        ]
        shares = [
            None if item.label is None else shared_words(one, item.label)
            for item, one in zip(batch, found, strict=True)
        ]
        return Scored(torch.where(has_answer, loss, torch.nan), has_answer.long(), found, shares)


def _span(item: Item) -> tuple[int, int] | None:
    """First and last token of the answer, both inclusive; None where there is none."""
    at = -1 if not item.label or item.second is None else item.second.find(item.label)
    if at < 0 or item.label is None:
        return None
    places = [
        place
        for place, span in enumerate(item.source.spans)
        if item.source.parts[place] == 1 and span and span[1] > at and span[0] < at + len(item.label)
    ]
    return (places[0], places[-1]) if places else None


def _answer(item: Item, first: Tensor, last: Tensor) -> str:
    """The text between the two tokens of the second text with the largest sum of logits, in order and not far apart."""
    places = [place for place, part in enumerate(item.source.parts) if part == 1]
    if not places:
        return ""
    sums = first[places][:, None] + last[places][None]
    allowed = torch.ones_like(sums).triu() - torch.ones_like(sums).triu(LONGEST)
    best = int(sums.masked_fill(allowed == 0, -torch.inf).argmax())
    left, right = (item.source.spans[places[one]] for one in divmod(best, len(places)))
    assert item.second is not None
    assert left is not None
    assert right is not None
    return item.second[left[0] : right[1]].strip()


def shared_words(one: str, other: str) -> float:
    """The F1 of the words of two answers, without case, punctuation and articles (Rajpurkar et al. 2016)."""
    bags = [Counter(_words(text)) for text in (one, other)]
    both, every = (bags[0] & bags[1]).total(), bags[0].total() + bags[1].total()
    return 2 * both / every if every else 1.0


def _words(text: str) -> list[str]:
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()
