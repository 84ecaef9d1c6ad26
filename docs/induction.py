"""Trains a small decoder until it copies, and asks a store of its maps which heads do it (Olsson et al. 2022).

    python docs/induction.py models

The texts are random tokens that repeat with a period of their own, from 8 to 32, so that no fixed distance helps: what
comes next is known only by finding the last token like this one and looking at what came after it. Two layers can do
that, the first by attending to the previous token, the second by what it finds there. The same model before training
is the control. Both are saved, as models/untrained and models/trained.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.nn.functional import cross_entropy

import attnstore
from attnstore.job.recipe import Recipe

VOCABULARY = 200
"""Tokens, one of them for padding."""

POSITIONS = 64
"""The longest text."""


def new_model(seed: int) -> transformers.LlamaForCausalLM:
    """Two layers of four heads with random weights; a feed-forward part of 16 is nearly none."""
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=POSITIONS,
        pad_token_id=0,
    )
    return transformers.LlamaForCausalLM(config)


def periodic(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts [text, token] of random tokens that repeat with a period of their own, and whether a token is a repeat."""
    period = torch.randint(POSITIONS // 8, POSITIONS // 2 + 1, (count, 1), generator=generator)
    drawn = torch.rand(count, VOCABULARY - 1, generator=generator).argsort(dim=1)[:, :POSITIONS] + 1
    place = torch.arange(POSITIONS)
    return drawn.gather(1, place % period), place >= period


def loss_of(model: transformers.LlamaForCausalLM, texts: torch.Tensor, repeated: torch.Tensor) -> torch.Tensor:
    """Cross-entropy in nats of the repeated tokens. The first of a repeat is unknown and does not count."""
    known = repeated[:, 1:] & repeated[:, :-1]
    return cross_entropy(model(texts).logits[:, :-1][known], texts[:, 1:][known])


def train(model: transformers.LlamaForCausalLM, steps: int, seed: int) -> Iterator[float]:
    """The loss on 32 fresh texts at every step, before the step is taken."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps, pct_start=0.1)
    model.train()
    for _ in range(steps):
        loss = loss_of(model, *periodic(32, generator))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield loss.item()
    model.eval()


def save(model: transformers.LlamaForCausalLM, folder: Path) -> None:
    """The model with a tokenizer of as many made-up words."""
    words = {"[PAD]": 0, **{f"w{number:03}": number for number in range(1, VOCABULARY)}}
    inner = Tokenizer(models.WordLevel(words, unk_token="[PAD]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.utils.logging.disable_progress_bar()
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="[PAD]").save_pretrained(folder)
    model.save_pretrained(folder)


def scores(folder: Path, length: int) -> list[dict[str, Any]]:
    """The answer to induction/scores of a model's maps: 16 texts of `length` random tokens that stand twice."""
    corpus = {"kind": "repeated_random", "length": length, "count": 16}
    recipe = Recipe.build({"corpus": corpus, "model": {"name": str(folder)}})
    with TemporaryDirectory() as place, attnstore.ingest(recipe, Path(place) / "s.attn") as store:
        return list(store.ask("induction/scores"))


def show(folder: Path, length: int) -> None:
    """One line for each layer and score: the value of every head, and that of equal attention."""
    print(f"  {length} tokens, each twice")
    lines: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in scores(folder, length):
        lines.setdefault((row["layer"], row["score"]), []).append(row)
    for (layer, score), heads in lines.items():
        values = "  ".join(f"{row['value']:.3f}" for row in heads)
        print(f"    layer {layer}  {score:9}  {values}    chance {heads[0]['chance']:.3f}")


def main(folder: Path, steps: int, seed: int) -> None:
    """Train, save, and print the loss and the scores before and after."""
    model = new_model(seed)
    fresh = periodic(256, torch.Generator().manual_seed(seed + 1))
    for name in ("untrained", "trained"):
        for step, loss in enumerate(train(model, steps, seed + 2) if name == "trained" else ()):
            if step % 100 == 0:
                print(f"  step {step:4}  loss {loss:.3f}")
        with torch.inference_mode():
            print(f"{name}: {loss_of(model, *fresh):.3f} nats on repeated tokens of 256 fresh texts")
        save(model, folder / name)
        for length in (12, 30):
            show(folder / name, length)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the models are saved")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
