"""This file scores what a model with a task's head puts out, example by example, and gives the loss of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnstore.capture.instrument import Inputs, Instrument, Watch
from attnstore.errors import BadInput
from attnstore.text.encoded import Encoded


@dataclass(frozen=True, slots=True)
class Item:
    """What a task knows of one example: its number in the store, its label, its texts and their tokens."""

    number: int
    name: str
    label: str | None
    text: str
    second: str | None
    source: Encoded
    target: Encoded | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """What a task says of the examples of a batch.

    `loss` [batch] with gradients where they are on, the mean over `n` [batch] targets; NaN and 0 where an example has
    none. `predicted` and `score` are what is kept of the prediction: a label or a text, and a number such as a
    similarity; None where the task has no such thing. `logits` [batch, class], where there are classes.
    """

    loss: Tensor
    n: Tensor
    predicted: Sequence[str | None] = field(default_factory=tuple)
    score: Sequence[float | None] = field(default_factory=tuple)
    logits: Tensor | None = None


class Task(Protocol):
    """One way of holding a model's output against what an example says is right."""

    needs_labels: bool
    """Whether an example without a label cannot be scored."""

    def gold(self, item: Item) -> str | None:
        """What is right by the example's label, None without one. BadInput for a label that does not fit the task."""
        ...

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        """What the model is fed for these examples."""
        ...

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        """Loss and prediction of each example."""
        ...


@runtime_checkable
class OwnPass(Protocol):
    """A task that runs the model itself, as often as it likes."""

    def run(self, model: nn.Module, batch: Sequence[Item], inputs: Inputs) -> Scored:
        """What comes of it."""
        ...


def scored_pass(
    instrument: Instrument,
    task: Task,
    batch: Sequence[Item],
    fed: Inputs,
    watch: Watch | None = None,
    *,
    start: int = 0,
) -> Scored:
    """What the task says of one pass over `fed`, which its `inputs` made. `start` is as in `Instrument.run`."""
    with torch.inference_mode():
        if isinstance(task, OwnPass):
            with instrument.watching(watch):
                return task.run(instrument.model, batch, fed)
        return task.score(instrument.run(fed, watch, start=start), batch, fed)


class Classification:
    """One of several classes; an example's label is the name of a class, or its number."""

    needs_labels = True

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def gold(self, item: Item) -> str | None:
        place = self.place(item)
        return None if place is None else self.names[place]

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        return inputs

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        logits: Tensor = output.logits
        if logits.shape[-1] != len(self.names):
            raise BadInput(
                "scoring a classifier", f"{logits.shape[-1]} classes", f"the {len(self.names)} of task.labels"
            )
        classes = [self.place(item) for item in batch]
        gold = torch.tensor([-100 if one is None else one for one in classes], device=logits.device)
        loss = functional.cross_entropy(logits, gold, reduction="none", ignore_index=-100)
        is_finite = logits.isfinite().all(-1)
        counts = (gold >= 0) & is_finite
        places = zip(logits.argmax(-1).tolist(), is_finite.tolist(), strict=True)
        return Scored(
            torch.where(counts, loss, torch.nan),
            counts.long(),
            [self.names[place] if known else None for place, known in places],
            logits=logits,
        )

    def place(self, item: Item) -> int | None:
        """The number of the example's class; None without a label. BadInput for a label that is no class."""
        if item.label is None:
            return None
        if item.label in self.names:
            return self.names.index(item.label)
        if item.label.isdecimal() and int(item.label) < len(self.names):
            return int(item.label)
        raise BadInput(
            f"scoring {item.name}",
            f"the label {item.label!r}",
            f"one of {', '.join(self.names)}, or a number below {len(self.names)}",
            'Say which class has which name: [task] labels = ["…", "…"], in the order of the model\'s classes',
        )


class Regression:
    """One number; an example's label is the number that is right, the loss the square of the difference."""

    needs_labels = True

    def gold(self, item: Item) -> str | None:
        number_of(item)
        return item.label

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        return inputs

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        found: Tensor = output.logits.squeeze(-1)
        if found.dim() != 1:
            raise BadInput("scoring a regression", f"{output.logits.shape[-1]} numbers an example", "one")
        gold = torch.tensor([number_of(item) for item in batch], device=found.device)
        loss = (found - gold).square()
        return Scored(loss, (~gold.isnan()).long(), score=found.detach().tolist())


def number_of(item: Item) -> float:
    if item.label is None:
        return float("nan")
    try:
        number = float(item.label)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadInput(f"scoring {item.name}", f"the label {item.label!r}", "a number")
    return number


class _OfTokens:
    """A task whose targets are tokens, which need no label."""

    needs_labels = False

    def gold(self, item: Item) -> str | None:
        return None


class MaskedLM(_OfTokens):
    """Tokens predicted where they stand: every one that is not special, or 15 in 100 of them, masked."""

    def __init__(self, targets: str, mask_id: int | None, vocabulary: int, seed: int) -> None:
        self.targets, self.mask_id, self.vocabulary, self.seed = targets, mask_id, vocabulary, seed
        if targets == "bert15" and mask_id is None:
            raise BadInput('reading task.targets = "bert15"', "a tokenizer without a mask token", 'targets = "all"')

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        if self.targets == "all":
            return inputs
        ids = inputs["input_ids"].clone()
        for row, item in enumerate(batch):
            places, replaced = self._masked(item)
            ids[row, places] = torch.tensor(replaced, device=ids.device, dtype=ids.dtype)
        return {**inputs, "input_ids": ids}

    def _masked(self, item: Item) -> tuple[list[int], list[int]]:
        """The places of an example that are predicted, and what stands there: [MASK], any token, or what was."""
        rng = np.random.default_rng([self.seed, item.number])
        plain = [place for place, special in enumerate(item.source.special) if special is None]
        count = max(1, round(0.15 * len(plain))) if plain else 0
        places = sorted(rng.choice(plain, count, replace=False).tolist()) if plain else []
        replaced = []
        for place in places:
            drawn = rng.random()
            other = int(rng.integers(self.vocabulary))
            assert self.mask_id is not None
            replaced.append(self.mask_id if drawn < 0.8 else other if drawn < 0.9 else item.source.ids[place])
        return places, replaced

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        gold = torch.full_like(inputs["input_ids"], -100)
        for row, item in enumerate(batch):
            plain = [place for place, special in enumerate(item.source.special) if special is None]
            places = plain if self.targets == "all" else self._masked(item)[0]
            gold[row, places] = torch.tensor([item.source.ids[place] for place in places], device=gold.device)
        return _of_tokens(output.logits, gold)


class CausalLM(_OfTokens):
    """Each token predicted from those before it."""

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        return inputs

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        gold = inputs["input_ids"][:, 1:].masked_fill(~inputs["attention_mask"][:, 1:].bool(), -100)
        return _of_tokens(output.logits[:, :-1], gold)


class Translation(_OfTokens):
    """Each token of the target predicted from those before it and the source, and its end."""

    def __init__(self, end: int) -> None:
        self.end = end

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        return inputs

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        gold = torch.full_like(inputs["decoder_input_ids"], -100)
        for row, item in enumerate(batch):
            # What a decoder is fed lacks the last target; where the start is a language's name, that is not the end.
            fed = () if item.target is None else item.target.ids
            targets = [*fed[1:], *([self.end] if fed and (len(fed) == 1 or fed[-1] != self.end) else [])]
            gold[row, : len(targets)] = torch.tensor(targets, device=gold.device, dtype=gold.dtype)
        return _of_tokens(output.logits, gold)


def _of_tokens(logits: Tensor, gold: Tensor) -> Scored:
    """The mean loss over the tokens of each example, and the share of them that were predicted right as its score."""
    loss = functional.cross_entropy(logits.transpose(1, 2), gold, reduction="none", ignore_index=-100)
    counted = gold >= 0
    n = counted.sum(1)
    right = ((logits.argmax(-1) == gold) & counted).sum(1) / n
    return Scored(
        loss.sum(1) / n,
        n,
        score=[None if n == 0 else score for n, score in zip(n.tolist(), right.tolist(), strict=True)],
    )
