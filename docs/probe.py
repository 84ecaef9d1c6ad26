"""Trains a probe that finds each word's governor from attention alone (Clark et al. 2019, section 5).

    attnstore export gum.attn probe.parquet --question probe/features
    python docs/probe.py probe.parquet

The score of a candidate i for the governor of j is the sum over heads of w * (weight from i to j) + u * (weight from j
to i); that of the root weighs what j gives to [CLS] and to [SEP] with the same w and u, times a scalar each. A softmax
over all candidates makes it a probability. Every third document is held out, and the score is that of its words.

Memory is that of the features at half precision, 4 bytes a head for every pair of words of a sentence.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

ROWS = 1 << 14
"""Rows of the file that are read at a time."""


@dataclass(frozen=True)
class Sentence:
    """`weights` [direction, dependent, candidate, head]: from candidate to dependent, and back.

    `word`, `governor` (its place among the candidates; -1 if it is none), `scored` (no punctuation): [dependent];
    `candidate` [dependent, candidate]: words, and -1 for the root.
    """

    document: str
    weights: torch.Tensor
    word: np.ndarray
    candidate: np.ndarray
    governor: np.ndarray
    scored: np.ndarray


def sentences(path: str) -> Iterator[Sentence]:
    """Every sentence of the file."""
    left: list[pa.Table] = []
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(ROWS):
            rows = pa.concat_tables([*left, pa.Table.from_batches([batch])]).combine_chunks()
            keys = np.stack([rows[name].to_numpy() for name in ("example", "sentence")])
            starts = [0, *(np.flatnonzero((np.diff(keys) != 0).any(axis=0)) + 1).tolist()]
            for start, stop in pairwise(starts):
                yield sentence(rows[start:stop])
            left = [rows[starts[-1] :]]  # it may go on in the next block
    yield from map(sentence, left)


def sentence(rows: pa.Table) -> Sentence:
    """Each of n words has n candidates: the root, and all words but itself."""
    n = len(rows["dependent"].unique())
    squared = {name: rows[name].to_numpy().reshape(n, n) for name in ("dependent", "candidate", "label", "punct")}
    # Null where a text has no [CLS] or no [SEP].
    flat = [rows[name].combine_chunks().flatten().to_numpy(zero_copy_only=False) for name in ("forward", "backward")]
    weights = torch.from_numpy(np.nan_to_num(np.stack(flat)).reshape(2, n, n, -1)).half()
    label = squared["label"]
    governor = np.where(label.any(axis=1), label.argmax(axis=1), -1)
    word, scored = squared["dependent"][:, 0], ~squared["punct"][:, 0].astype(bool)
    return Sentence(rows["document"][0].as_py(), weights, word, squared["candidate"], governor, scored)


class Probe(torch.nn.Module):
    """The logit of every candidate of every word: [dependent, candidate]."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.of_head = torch.nn.Parameter(torch.zeros(2, heads))  # w and u
        self.of_root = torch.nn.Parameter(torch.ones(2))  # of [CLS] and of [SEP]

    def forward(self, one: Sentence) -> torch.Tensor:
        """Not normalised."""
        both = torch.einsum("xdch,xh->xdc", one.weights.float(), self.of_head)
        is_root = torch.from_numpy(one.candidate == -1)
        return torch.where(is_root, torch.einsum("xdc,x->dc", both, self.of_root), both.sum(dim=0))


def train(known: Sequence[Sentence], epochs: int) -> Probe:
    """One sentence a step, losses summed over its words."""
    probe = Probe(known[0].weights.shape[-1])
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.002)
    for _ in range(epochs):
        for one in known:
            target = torch.from_numpy(one.governor)
            loss = torch.nn.functional.cross_entropy(probe(one), target, ignore_index=-1, reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return probe


def right(one: Sentence, place: np.ndarray) -> np.ndarray:
    """How many scored words `place` [dependent, …] attaches right: [...]."""
    governor = one.governor.reshape(-1, *[1] * (place.ndim - 1))
    return ((place == governor) & (governor >= 0))[one.scored].sum(axis=0)


def neighbour(one: Sentence, offset: int) -> np.ndarray:
    """The place among the candidates of the word before or after each word; -1 at the end of the sentence."""
    wanted = np.append(one.word, -2)[(np.arange(len(one.word)) + offset).clip(-1)]  # -2 is no word
    found = one.candidate == wanted[:, None]
    return np.where(found.any(axis=1), found.argmax(axis=1), -1)


def of_heads(some: Sequence[Sentence]) -> np.ndarray:
    """How many words the largest weight of each head attaches right, [direction, head]; no head speaks of the root."""
    places = ((one, one.weights[:, :, 1:].argmax(dim=2) + 1) for one in some if len(one.word) > 1)
    return np.sum([right(one, place.permute(1, 0, 2).numpy()) for one, place in places], axis=0)


def main(path: str, epochs: int) -> None:
    """Train and print the unlabelled attachment scores."""
    found = [one for one in sentences(path) if one.document is not None]
    names = sorted({one.document for one in found})
    if len(names) < 2:
        raise SystemExit(f"{path} has sentences of {len(names)} documents: a split by document needs two")
    held_out = [one for one in found if one.document in names[::3]]
    known = [one for one in found if one.document not in names[::3]]
    probe, best = train(known, epochs), np.unravel_index(of_heads(known).argmax(), (2, known[0].weights.shape[-1]))
    with torch.no_grad():
        scores = {
            "the probe": sum(right(one, probe(one).argmax(dim=1).numpy()) for one in held_out),
            "the word after": sum(right(one, neighbour(one, 1)) for one in held_out),
            "the word before": sum(right(one, neighbour(one, -1)) for one in held_out),
            "the head that is best on the other documents": of_heads(held_out)[best],
        }
    n = sum(one.scored.sum() for one in held_out)
    print(f"UAS on {n} words of {len(names[::3])} of {len(names)} documents, held out, without punctuation:")
    for name, count in scores.items():
        print(f"  {count / n:.3f}  {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", help="the Parquet file that attnstore export wrote")
    parser.add_argument("--epochs", type=int, default=20)
    asked = parser.parse_args()
    main(asked.features, asked.epochs)
