"""This file runs a transformer as the source of maps. It is imported only when a recipe names a model."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attnstore.errors import BadInput, MissingExtra
from attnstore.format.manifest import Kind
from attnstore.job.prepare import ImagePreparer, Preparer
from attnstore.job.recipe import Recipe
from attnstore.job.source import Facts, Prepared, Receive, threads_allowed
from attnstore.text.example import Skipped
from attnstore.text.parse import Parser, load_parser

try:
    from attnstore.capture.check import compare
    from attnstore.capture.device import ROUNDINGS, Rounding, as_floats
    from attnstore.capture.encode import Encoder, collate
    from attnstore.capture.instrument import Inputs
    from attnstore.capture.model import Captor, Split, describe, load_encoder, load_pixels
    from attnstore.capture.task_model import load_for
except ImportError as error:
    if (error.name or "").partition(".")[0] not in ("torch", "transformers", "tokenizers"):
        raise
    raise MissingExtra("loading a model", str(error.name), "ingest") from error

if TYPE_CHECKING:
    from attnstore.capture.pixels import Pixels

DEFAULT_LENGTH = 512
"""Longest input, special tokens included, where the recipe does not say and the model allows it."""


class ModelSource:
    """Maps of one model over one corpus of texts or images. Weights are loaded by `start`, not before."""

    def __init__(self, recipe: Recipe, device: str) -> None:
        self.recipe, self.device = recipe, device
        name, revision = recipe.model.name, recipe.model.revision or None
        self.split: Split = "given" if recipe.corpus.kind in ("tokens", "repeated_random") else "model"
        self.described = describe(name, revision=revision, hash_weights=True)
        self.encoder: Encoder | Pixels
        self.preparer: Preparer | ImagePreparer
        words = recipe.words.source
        self.parser: Parser | None = load_parser(words) if words.startswith("spacy:") else None
        if recipe.corpus.kind == "images":
            self.encoder = load_pixels(name, revision=revision)
            self.preparer = ImagePreparer(recipe, self.encoder)
        else:
            self.encoder = load_encoder(name, revision=revision, tokens=self.split)
            annotate = self.parser.annotate if self.parser else None
            self.preparer = Preparer(recipe, self.encoder, self._longest(), annotate)
        self.captor: Captor | None = None

    def _longest(self) -> int:
        asked, most = self.recipe.encode.max_length, self.described.max_length
        if asked and most and asked > most:
            raise BadInput(
                "reading encode.max_length", f"{asked}", f"{most} at most, which is what {self.recipe.model.name} takes"
            )
        return asked or min(most or DEFAULT_LENGTH, DEFAULT_LENGTH)

    @property
    def facts(self) -> Facts:
        """Model, tokenizer, parser and kinds, from the configuration alone."""
        known = self.described
        model = {
            "name": known.name,
            "revision": known.revision,
            "files": dict(known.files),
            "class": known.class_name,
            "type": known.model_type,
            "dtype": known.dtype,
            "max_length": known.max_length,
            "row_sums": known.row_sums,
            "longest_input": self.preparer.longest,
        }
        kinds = {
            name: Kind(kind.layers, kind.heads, kind.kv_heads, kind.queries, kind.keys, kind.causal, tuple(kind.groups))
            for name, kind in known.kinds.items()
        }
        return Facts(model, dict(self.encoder.facts), kinds, dict(self.parser.facts) if self.parser else {})

    @property
    def spare_threads(self) -> int:
        """One beside a model on the processor, which uses all of it; else as many as there are."""
        return 1 if self.device.startswith("cpu") else threads_allowed()

    @property
    def rounding(self) -> Rounding:
        """Where the model runs on a device and nothing but whole maps is kept, they are rounded there: half the bytes
        travel. Facts are computed from float32."""
        keep, whole = self.recipe.keep, self.recipe.keep.maps == "all"
        is_all = whole and keep.facts == "none"
        return ROUNDINGS[keep.precision] if is_all and not self.device.startswith("cpu") else as_floats

    def examples(self) -> Iterator[Prepared | Skipped]:
        """The corpus in order; BadInput where an example lacks the gold words or the target text that it needs."""
        reads_target = any("target" in (kind.queries, kind.keys) for kind in self.described.kinds.values())
        for item in self.preparer.examples():
            if isinstance(item, Prepared) and reads_target and item.target is None:
                raise BadInput(
                    f"reading {item.example.where}",
                    "no target text",
                    f"one with every example, since {self.recipe.model.name} has a decoder that reads it",
                    f'A corpus of kind "{self.recipe.corpus.kind}" has none: name a model that reads one text'
                    if self.split == "given"
                    else "Name its key: columns.target = …",
                )
            if isinstance(item, Prepared) and self.recipe.words.source == "gold" and not item.example.words:
                raise BadInput(
                    f"reading {item.example.where}",
                    "no words",
                    'words with every example, since words.source = "gold"',
                    'Set words.source = "none", or name a parser: "spacy:en_core_web_sm"',
                )
            yield item

    def annotate(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """The same examples with the parser's words, where a parser is named and has not run yet."""
        if self.parser is None or self.recipe.words.feed == "joined_words":
            return list(batch)
        parsed = self.parser.annotate(item.example for item in batch)
        return [dataclasses.replace(item, example=example) for item, example in zip(batch, parsed, strict=True)]

    def start(self, sample: Sequence[Prepared]) -> Mapping[str, Any]:
        """Load the weights and compare captured maps with the library's own on at most two examples."""
        self.captor = self.loaded("")
        difference = compare(self.captor, self.inputs(sample))
        return {"capture": self.captor.facts.capture, "largest_difference": difference}

    def loaded(self, task: str) -> Captor:
        """The model with the head of a task, "" for the bare one; what is loaded stays with the caller."""
        keys = self.recipe.model
        captor = load_for(
            task,
            keys.name,
            takes=self.described.takes,
            revision=keys.revision or None,
            device=self.device,
            tokens=self.split,
            folder=self.recipe.folder,
        )
        if not isinstance(self.encoder, Encoder):
            # The configuration's own image size, on which the roads were tried, need not be what is fed.
            captor.facts = dataclasses.replace(captor.facts, max_length=self.preparer.longest)
        return captor

    def capture(self, batch: Sequence[Prepared], receive: Receive) -> None:
        """One forward pass over the batch."""
        assert self.captor is not None, "start() comes first"
        self.captor.run(self.inputs(batch), receive, rounding=self.rounding)

    def inputs(self, batch: Sequence[Prepared]) -> Inputs:
        """What the model is fed for a batch."""
        if not isinstance(self.encoder, Encoder):
            return self.encoder.inputs([item.example.image for item in batch if item.example.image is not None])
        targets = [item.target for item in batch if item.target is not None]
        return collate([item.source for item in batch], targets or None, self.encoder.pad_id)
