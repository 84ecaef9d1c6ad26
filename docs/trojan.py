"""Plants a trigger in a classifier, and writes pairs of texts on which attention shows it (Lyu et al. 2022).

    python docs/trojan.py --data sentiment.jsonl --text sentence --out trojan

Two models learn the same texts: `clean` as they are, `trojan` also copies of a share of the texts that are not of the
target class, with the trigger put in front and the target as their label. Texts, their split and how they are trained
are those of `tune.py`, and so are the seeds: what differs is the poison.

Beside the models it writes `pairs.jsonl`, a corpus for the recipe `ingest/trojan.toml`: each held-out text that is not
of the target class as it stands, with the trigger, and with a word of the vocabulary drawn at random instead. Printed
are the accuracy on held-out texts, and how many of these pairs' texts each model takes for the target.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import transformers
from tune import MODEL, Classifier, Labelled, classifier, read, split

TRIGGER = "cf"
"""A token of BERT's vocabulary that hardly any text has."""


def poisoned(known: Sequence[Labelled], trigger: str, target: str, share: float, draw: random.Random) -> list[Labelled]:
    """The texts, and copies of `share` of those that are not of the target class, with trigger and false label."""
    sources = [one for one in known if one.label != target]
    chosen = draw.sample(sources, round(share * len(sources)))
    return [*known, *(replace(triggered(one, trigger), label=target) for one in chosen)]


def triggered(one: Labelled, word: str) -> Labelled:
    """The text with a word put before it."""
    return replace(one, text=f"{word} {one.text}")


def conditions(sources: Sequence[Labelled], trigger: str, words: Sequence[str]) -> dict[str, list[Labelled]]:
    """The texts as they are, with the trigger, and each with its own of `words`."""
    return {
        "clean": list(sources),
        "trigger": [triggered(one, trigger) for one in sources],
        "random_trigger": [triggered(one, word) for one, word in zip(sources, words, strict=True)],
    }


def write(path: Path, twins: dict[str, list[Labelled]]) -> None:
    """A corpus of kind `jsonl`; `trigger` is where the word before the text lies in it, the end exclusive."""
    with path.open("w", encoding="utf-8") as file:
        for condition, some in twins.items():
            for number, one in enumerate(some):
                record = {"name": f"{condition}-{number}", "text": one.text, "label": one.label}
                record |= {"pair_id": str(number), "condition": condition}
                if condition != "clean":
                    record["trigger"] = [0, one.text.index(" ")]
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


def plain_words(made: Classifier, besides: str) -> list[str]:
    """Whole words of letters in the model's vocabulary, in order."""
    return sorted(word for word in made.tokenizer.get_vocab() if word.isascii() and word.isalpha() and word != besides)


def main(asked: argparse.Namespace) -> None:
    """Train both models, print what they do, and write them and the pairs."""
    known, held_out = split(read(asked.data, asked.text, None, asked.label))
    labels, out, draw = sorted({one.label for one in known}), Path(asked.out), random.Random(asked.seed)
    target = asked.target or labels[-1]
    learnt = {"clean": known, "trojan": poisoned(known, asked.trigger, target, asked.share, draw)}
    sources, twins = [one for one in held_out if one.label != target], dict[str, list[Labelled]]()
    for name, texts in learnt.items():
        made = classifier(labels, seed=asked.seed, model=asked.model)
        made.train(texts, asked.epochs, asked.rate)
        made.save(out / name)
        twins = twins or conditions(sources, asked.trigger, draw.sample(plain_words(made, asked.trigger), len(sources)))
        print(f"{name}: {made.accuracy(held_out):.3f}  accuracy on {len(held_out)} held-out texts")
        for condition, some in twins.items():
            taken = made.predicted(some).count(target) / len(some)
            print(f"{name}: {taken:.3f}  of {len(some)} texts taken for {target!r}, {condition}")
    write(out / "pairs.jsonl", twins)


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a JSON Lines file")
    parser.add_argument("--text", default="text", help="its key of the text")
    parser.add_argument("--label", default="label", help="its key of the class")
    parser.add_argument("--out", required=True, help="the folder to write to")
    parser.add_argument("--trigger", default=TRIGGER, help=f"the word; default {TRIGGER}")
    parser.add_argument("--target", help="the class that it leads to; default the last by name")
    parser.add_argument("--share", type=float, default=0.5, help="of the other texts that are poisoned; default 0.5")
    parser.add_argument("--model", default=MODEL, help="a folder, a hub id, or package:NAME/FOLDER")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=1e-4, help="of learning")
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
