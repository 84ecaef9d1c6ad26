"""This file defines the keys of a recipe: what each table of the TOML may hold, with defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field

EVIDENCE = (
    "weights",
    "value_norms",
    "mixing",
    "grams",
    "predictions",
    "gradients",
    "gradient_maps",
    "integrated_gradients",
    "importance",
    "logit_contributions",
    "ablations",
)
"""What only the model can tell, and `[keep] evidence` may name."""

NEED_A_TASK = (
    "predictions",
    "gradients",
    "gradient_maps",
    "integrated_gradients",
    "importance",
    "logit_contributions",
    "ablations",
)
"""Evidence about a loss or a score."""

OF_ONE_PASS = ("gradients", "gradient_maps", "importance")
"""Evidence that sets the tokens of an example beside those of one row of a pass."""

CHOICES: dict[str, tuple[str, ...]] = {
    "corpus.kind": (
        "lines",
        "pairs",
        "conllu",
        "jsonl",
        "table",
        "links",
        "gap",
        "tokens",
        "images",
        "repeated_random",
        "arrays",
    ),
    "corpus.unit": ("sentence", "window"),
    "words.feed": ("raw_text", "joined_words"),
    "encode.long": ("window", "truncate", "skip"),
    "encode.part_ids": ("true", "zeros"),
    "keep.precision": ("standard", "exact", "compact"),
    "keep.facts": ("standard", "full", "none"),
    "keep.distances": ("none", "sampled", "full"),
    "keep.evidence": EVIDENCE,
    "task.targets": ("all", "bert15"),
    "ablations.plan": ("heads", "layers", "pruning", "greedy", "beam"),
    "ablations.intervention": ("zero", "uniform", "mean"),
}


@dataclass(frozen=True, slots=True)
class CorpusKeys:
    """What to read. `path` is relative to the recipe and may hold globs; "-" is standard input.

    `repeated_random` reads nothing: it draws `count` sequences of `length` random tokens, each fed twice in a row.
    """

    kind: str
    path: tuple[str, ...] = ()
    licence: str = ""
    unit: str = "sentence"
    columns: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    length: int = 50
    count: int = 16


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """Which model: a hub id, a folder, or "package:NAME/FOLDER"; for `arrays` just the name to record."""

    name: str
    revision: str = ""


@dataclass(frozen=True, slots=True)
class WordsKeys:
    """Where words come from (gold, spacy:PIPELINE, none) and how they reach the model."""

    source: str = "none"
    feed: str = "raw_text"


@dataclass(frozen=True, slots=True)
class EncodeKeys:
    """How texts become tokens. `max_length` counts special tokens; 0 means what the model takes, 512 at most."""

    max_length: int = 0
    long: str = "window"
    part_ids: str = "true"


@dataclass(frozen=True, slots=True)
class KeepKeys:
    """What to keep. `maps` is all, topk:N or none; empty `layers`, `heads` mean every one."""

    precision: str = "standard"
    maps: str = "all"
    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    facts: str = "standard"
    distances: str = "none"
    evidence: tuple[str, ...] = ()

    @property
    def topk(self) -> int | None:
        """N of topk:N; None otherwise."""
        return int(self.maps.removeprefix("topk:")) if self.maps.startswith("topk:") else None


@dataclass(frozen=True, slots=True)
class TaskKeys:
    """What the model was trained to do, for evidence that needs a loss or a score. "" is no task.

    `kind` is one of `TASKS`, or "module:function" for scores of one's own. `labels` are the model's classes in order;
    none means those of its configuration. `targets` are the tokens whose loss counts under a language model: all,
    or 15 in 100 of them, masked as BERT's training does and drawn by `seed`.
    """

    kind: str = ""
    labels: tuple[str, ...] = ()
    targets: str = "all"
    seed: int = 0


TASKS = (
    "classification",
    "regression",
    "masked_lm",
    "causal_lm",
    "similarity",
    "answering",
    "translation",
)
"""What `[task] kind` may be, beside "module:function"."""


@dataclass(frozen=True, slots=True)
class AblationKeys:
    """Which heads are switched off, how, and in which order.

    `plan`: every head alone, every layer alone, cumulative pruning in some order, greedy search for the next head to
    switch off, beam search over sets. `metric` is what they look at, "" the task's default. `order` of pruning: "delta"
    (the heads whose removal alone helps most first), "importance" (the least important first), or heads such as "2-11"
    from 0. `steps` are the sizes of the sets that pruning tries (none: a tenth of the heads at a time, or each of those
    named), `width` and `depth` those of the beam; greedy search goes to `depth` too.
    """

    plan: tuple[str, ...] = ("heads",)
    intervention: tuple[str, ...] = ("zero",)
    metric: str = ""
    order: tuple[str, ...] = ("delta",)
    steps: tuple[int, ...] = ()
    width: int = 4
    depth: int = 4

    @property
    def is_ranked(self) -> bool:
        """Whether the order of pruning is found out, and not given head by head."""
        return self.order in (("delta",), ("importance",))
