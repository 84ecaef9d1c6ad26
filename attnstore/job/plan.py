"""This file cuts a corpus into segments before any model runs, and says what the run will cost."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tqdm import tqdm

from attnstore.errors import BadInput
from attnstore.format.arrays import SEGMENT_BYTES
from attnstore.format.compiled import is_compiling
from attnstore.format.manifest import Kept, Kind, PlannedSegment, StoreInfo, dumps
from attnstore.format.quantise import PRECISIONS
from attnstore.format.version import FORMAT
from attnstore.job.recipe import Recipe
from attnstore.job.source import Prepared, Source
from attnstore.job.writer import COMPILED_WEIGHTS
from attnstore.text.example import Link, Mention, Skipped, Word

SEGMENT_TOKENS = 65_536
"""Tokens at which a segment closes although its maps are small: its examples are held in memory."""

FACT_TABLES: Mapping[str, tuple[str, ...]] = {
    "standard": ("head_facts", "token_facts", "word_facts"),
    "full": ("head_facts", "token_facts", "token_masses", "word_facts"),
    "none": (),
}
"""The tables that `[keep] facts` stands for."""

FACT_PARAMETERS: Mapping[str, Any] = {"eps": 1e-4, "drop": "sep", "pieces": "mean"}
"""What the stored facts were computed with: entropy smoothing, keys dropped in confidence, word rule."""

DISTANCE_ROWS: Mapping[str, int] = {"sampled": 4, "full": 0}
"""Query rows of each map that divergences between heads are summed over, by `[keep] distances`; 0 means all."""

DISTANCE_EPS = 1e-3
"""Smoothing of the rows that are compared (Clark et al. 2019, section 6)."""

BYTES_PER_WEIGHT = {"standard": 1.15, "exact": 3.32, "compact": 0.61}
"""Measured on MiniLM over English running text; short inputs and other models differ."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do: the store's description and what it costs. `skipped` counts unusable examples.

    `digests` pins what the corpus gave for each segment, so that the run notices a corpus that changes meanwhile.
    """

    info: StoreInfo
    n_tokens: int
    n_weights: int
    longest: int
    skipped: int
    digests: tuple[str, ...] = ()

    @property
    def n_examples(self) -> int:
        """Examples that will be stored."""
        return self.info.n_examples

    @property
    def map_bytes(self) -> int:
        """Expected bytes of the maps on disk."""
        kept, kinds = self.info.kept, self.info.kinds
        if kept.maps == "none":
            return 0
        share = len(kept.layers or ()) / max(k.layers for k in kinds.values()) if kept.layers else 1.0
        share *= len(kept.heads or ()) / max(k.heads for k in kinds.values()) if kept.heads else 1.0
        if kept.topk:
            rows = sum(k.layers * k.heads for k in kinds.values()) * self.n_tokens
            return int(share * rows * kept.topk * (2 + BYTES_PER_WEIGHT[self.info.precision]))
        return int(share * self.n_weights * BYTES_PER_WEIGHT[self.info.precision])

    @property
    def fact_bytes(self) -> int:
        """Expected bytes of the fact tables.

        4 B for each token and head, as much again with words, 11 B with masses; 90 B for each example and head, and
        for each pair of heads that is compared 3.2 B an example.
        """
        if not self.info.facts["tables"]:
            return 0
        heads = sum(kind.layers * kind.heads for kind in self.info.kinds.values())
        recipe = self.info.recipe
        has_words = recipe["words"]["source"] != "none" or recipe["corpus"]["kind"] == "arrays"
        per_token = (8 if has_words else 4) + (11 if "token_masses" in self.info.facts["tables"] else 0)
        pairs = sum((kind.layers * kind.heads) ** 2 // 2 for kind in self.info.kinds.values())
        per_example = 90 * heads + (3.2 * pairs if "distances" in self.info.facts else 0)
        return heads * per_token * self.n_tokens + int(per_example * self.n_examples)

    @property
    def memory_bytes(self) -> int:
        """Expected peak above the loaded model.

        Two layers' maps of the longest example, the open chunks, what writing tables takes, and the compiler where
        facts are compiled.
        """
        heads = max(kind.heads for kind in self.info.kinds.values())
        layers = sum(kind.layers for kind in self.info.kinds.values())
        item = PRECISIONS[self.info.precision].itemsize
        layer = max(heads * self.longest**2 * 4, 16 * 2**20)
        compiler = 128 * 2**20 if self.n_weights >= COMPILED_WEIGHTS and is_compiling() else 0
        return 2 * layer + layers * heads * 65_536 * item + 192 * 2**20 + compiler


def make_plan(recipe: Recipe, source: Source) -> Plan:
    """The plan for a recipe: one pass over the tokenized corpus, no model weights, flat memory.

    BadInput where no example of the corpus can be used.
    """
    facts = source.facts
    item = PRECISIONS[recipe.keep.precision].itemsize
    fingerprint, digest = hashlib.sha256(), hashlib.sha256()
    segments: list[PlannedSegment] = []
    digests: list[str] = []
    cells = dict.fromkeys(facts.kinds, 0)
    first = number = skipped = tokens = all_tokens = weights = longest = 0
    reasons: dict[str, int] = {}
    for found in _progress(source.examples(), "plan"):
        told = identity(found)
        fingerprint.update(told)
        if isinstance(found, Skipped):
            digest.update(told)
            skipped += 1
            reasons[found.reason] = reasons.get(found.reason, 0) + 1
            continue
        own = {name: found.cells(kind) for name, kind in facts.kinds.items()}
        size = {name: cells[name] + own[name] for name in own}
        if number > first and (
            _raw_bytes(facts.kinds, size, item) > SEGMENT_BYTES or tokens + found.length > SEGMENT_TOKENS
        ):
            segments.append(PlannedSegment(first, number, cells))
            digests.append(digest.hexdigest())
            first, tokens, size, digest = number, 0, own, hashlib.sha256()
        digest.update(told)
        cells = size
        tokens += found.length
        all_tokens += found.length
        weights += sum(kind.layers * kind.heads * own[name] for name, kind in facts.kinds.items())
        longest = max(longest, found.length)
        number += 1
    if not number:
        raise BadInput(
            f"planning {recipe.title or 'the ingest'}",
            f"no usable example; skipped: {reasons}" if reasons else "no example in the corpus",
            "at least one text",
        )
    segments.append(PlannedSegment(first, number, cells))
    digests.append(digest.hexdigest())
    record = recipe.record()
    corpus = {
        "kind": recipe.corpus.kind,
        "licence": recipe.corpus.licence,
        "examples": number,
        "skipped": skipped,
        "fingerprint": fingerprint.hexdigest(),
    }
    described: dict[str, Any] = {
        "format": FORMAT,
        "title": recipe.title,
        "recipe": record,
        "model": dict(facts.model),
        "tokenizer": dict(facts.tokenizer),
        "parser": dict(facts.parser),
        "corpus": corpus,
        "precision": recipe.keep.precision,
        "facts": _facts(recipe),
    }
    cut = [[segment.first, segment.stop] for segment in segments]
    pinned = {**described, "recipe": recipe.record_of_maps(), "segments": cut}
    store_id = hashlib.sha256(dumps(pinned)).hexdigest()[:16]
    info = StoreInfo(
        **described,
        store_id=store_id,
        kinds=dict(facts.kinds),
        kept=_kept(recipe, facts.kinds),
        segments=tuple(segments),
    )
    return Plan(info, all_tokens, weights, longest, skipped, tuple(digests))


def _kept(recipe: Recipe, kinds: Mapping[str, Kind]) -> Kept:
    keep = recipe.keep
    for name, chosen, most in (
        ("layers", keep.layers, max(kind.layers for kind in kinds.values())),
        ("heads", keep.heads, max(kind.heads for kind in kinds.values())),
    ):
        outside = [number for number in chosen if not 0 <= number < most]
        if outside:
            raise BadInput(f"reading keep.{name}", f"{outside}", f"numbers from 0 to {most - 1}, which the model has")
    maps = "topk" if keep.topk else keep.maps
    return Kept(maps, tuple(sorted(set(keep.layers))) or None, tuple(sorted(set(keep.heads))) or None, keep.topk)


def _facts(recipe: Recipe) -> dict[str, Any]:
    """Which tables of facts are kept, and what they are computed with."""
    tables = list(FACT_TABLES[recipe.keep.facts])
    facts: dict[str, Any] = {"tables": tables, "parameters": dict(FACT_PARAMETERS)}
    if tables and recipe.keep.distances != "none":
        tables.append("head_distances")
        facts["distances"] = {"eps": DISTANCE_EPS, "sampled": DISTANCE_ROWS[recipe.keep.distances]}
    return facts


def _raw_bytes(kinds: Mapping[str, Kind], cells: Mapping[str, int], item: int) -> int:
    return sum(kind.layers * kind.heads * cells[name] * item for name, kind in kinds.items())


def identity(found: Prepared | Skipped) -> bytes:
    """What an example is, as bytes to be hashed: all that is stored of it, except the file and line it came from."""
    if isinstance(found, Skipped):
        return repr(("skipped", found.name, found.reason)).encode("utf-8", "surrogatepass")
    e = found.example
    ids = (found.source.ids, found.target.ids if found.target else None)
    # Annotation counts as well: a corrected parse is another corpus.
    annotation = [
        [fields(item) for item in items]
        for items, fields in (
            (e.words, _WORD),
            (e.target_words, _WORD),
            (e.mentions, _MENTION),
            (e.links, _LINK),
        )
    ]
    seen = (found.source.places, found.source.picture, e.trigger)
    told = (*(getattr(e, name) for name in _PLAIN), found.cut, ids, annotation, *(seen if any(seen) else ()))
    return repr(told).encode("utf-8", "surrogatepass")


_PLAIN = ("name", "text", "second", "document", "target", "label", "split", "pair_id", "condition")
_WORD, _MENTION, _LINK = (attrgetter(*kind.__slots__) for kind in (Word, Mention, Link))


def _progress(examples: Iterator[Prepared | Skipped], what: str) -> "tqdm[Prepared | Skipped]":
    # disable=None: shown on a terminal, quiet otherwise.
    return tqdm(examples, desc=what, unit=" examples", disable=None, leave=False)
