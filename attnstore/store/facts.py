"""This file lists the fact tables: which reduction fills each, what it must know of an example, and its defaults."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attnstore.format.fact_tables import COMPUTED, MADE
from attnstore.format.tables import TABLES
from attnstore.reduce.attention_flow import attention_flow
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.columns import Columns
from attnstore.reduce.flow import flow_facts
from attnstore.reduce.focus import focus_facts
from attnstore.reduce.grid import grid_facts, grid_offset_facts
from attnstore.reduce.head_distances import head_distances
from attnstore.reduce.head_facts import head_facts
from attnstore.reduce.induction import induction_facts
from attnstore.reduce.links import link_facts
from attnstore.reduce.map_patterns import pattern_facts
from attnstore.reduce.mentions import mention_facts
from attnstore.reduce.norms import layer_norm_facts
from attnstore.reduce.offsets import offset_facts
from attnstore.reduce.pairs import alignment_facts, pair_facts
from attnstore.reduce.probe_rows import pair_rows
from attnstore.reduce.received import received_facts
from attnstore.reduce.resample import resample
from attnstore.reduce.rollout import rollout
from attnstore.reduce.same_word import same_word_facts
from attnstore.reduce.streaming import streaming_facts
from attnstore.reduce.token_facts import token_facts
from attnstore.reduce.token_masses import token_masses
from attnstore.reduce.transfer import transfer_facts
from attnstore.reduce.trees import tree_facts
from attnstore.reduce.word_facts import word_facts
from attnstore.store.audits import CHOSEN, ROUNDING, ROW_SUMS, as_read
from attnstore.store.class_tests import STATISTICS, class_profiles, class_tests
from attnstore.store.fact import By, Derived, Fact, Reading, Reduction
from attnstore.store.head_correlations import NUMBERS, head_correlations
from attnstore.store.head_pairs import DISTANCES, head_clusters, head_coordinates, head_linkage, head_pairs
from attnstore.store.set_intervals import SCORES, set_intervals


def _of_tokens(reduction: Callable[..., Mapping[str, Any]]) -> Reduction:
    def reduce(weights: FloatArray, frame: Frame, rows: Columns, **params: object) -> Columns:
        return {"token": np.arange(len(frame.queries), dtype=np.int32), **reduction(weights, frame, **params)}

    return reduce


def _of_words(weights: FloatArray, frame: Frame, rows: Columns, **params: Any) -> Columns:
    return {"word": np.arange(frame.queries.n_words, dtype=np.int32), **word_facts(weights, frame, **params)}


def _of_heads(weights: FloatArray, frame: Frame, rows: Columns, **params: Any) -> Columns:
    return head_facts(weights, frame, **params)


# Mentions and links count the words of the source.
_LINKS = """
    select example, link, source_start_word, source_end_word, target_start_word, target_end_word
    from links where $side = 'source' order by example, link
"""
_TOKEN_TEXTS = "select example, text from tokens where side = $side order by example, token"
_TRIGGERS = "select example, trigger from tokens where side = $side order by example, token"
_TOKEN_PARTS = "select example, part from tokens where side = $side order by example, token"
_MENTIONS = """
    select example, mention, start_word, end_word, head_word from mentions
    where $side = 'source' order by example, mention
"""
# Codes have no size: their distances are in steps.
_GRID = """
    select
        t.example, t.token, t."row", t.col,
        coalesce(e.patch_height, 1) as height, coalesce(e.patch_width, 1) as width
    from tokens as t
    join examples as e using (example)
    where t.side = $side and t."row" is not null and t.col is not null
    order by t.example, t.token
"""
# Neither punctuation nor a word that nobody annotated takes part.
_FORMS = """
    select example, word, lower(form) as form, part from words
    where side = $side and regexp_matches(form, '[\\p{L}\\p{N}]') order by example, word
"""
_ARCS = """
    select example, word, sentence, governor from words
    where side = $side and deprel is not null order by example, word
"""
_CLASSES = """
    select
        t.example,
        case
            when $classes = 'kind' and t.special = 'other' and e.image_height is not null then 'register'
            when t.special is not null then t.special
            when $classes = 'kind' and t."row" is null then 'text'
            when $classes = 'kind' then if(e.image_height is null, 'code', 'patch')
            when $classes = 'upos' then coalesce(w.upos, 'none')
            when $classes = 'part' then if(t.part = 0, 'part_a', 'part_b')
            when $classes = 'special' then if(t.punct, 'punct', 'other')
            else error('classes: special, upos, part or kind')
        end as class
    from tokens as t
    join examples as e using (example)
    left join words as w using (example, side, word)
    where t.side = $side
    order by t.example, t.token
"""
# What a token keeps of itself: its own part's share after the norm of the sum, or of the sum where no norm follows.
_KEPT = """
    select
        f.example,
        list_transform(range(1, len(f.mix_norm) + 1), lambda i: coalesce(
            f.pres_norm_ln[i]::double / nullif(f.pres_norm_ln[i]::double + f.mix_norm_ln[i], 0),
            f.pres_norm_res[i]::double / nullif(f.pres_norm_res[i]::double + f.mix_norm[i], 0),
            1
        )) as kept
    from stored.mixing_facts as f
    join (select distinct kind from stored.heads where queries = $side and keys = $side) using (kind)
    where $mixing = 'measured' and f.example = $example
    order by f.example, f.token
"""
_PAIRS = """
    select example, source_word, target_word from word_pairs
    where side = $side and property = $property order by example, source_word, target_word
"""


def _resampled(weights: FloatArray, frame: Frame, known: Columns, *, size: int) -> Columns:
    return {"weights": resample(weights, size).reshape(len(weights), -1)}


def _rollout(weights: FloatArray, frame: Frame, known: Columns, *, heads: str, residual: float) -> Columns:
    measured = known["kept"].tolist()  # of each token a list over layers, where they are asked for
    return _cells(rollout(_over_heads(weights, heads), np.array(measured).T if measured else residual))


def _flow_through(weights: FloatArray, frame: Frame, known: Columns, *, heads: str, residual: float) -> Columns:
    return _cells(attention_flow(_over_heads(weights, heads), residual))


def _over_heads(weights: FloatArray, heads: str) -> FloatArray:
    """Maps [layer, query, key] of `weights` [layer, head, query, key].

    The largest or the least weights of a row are divided by their sum; where heads share no key, all least are 0.
    """
    if heads == "mean":
        mean: FloatArray = weights.mean(axis=1, dtype=np.float64)
        return mean
    extreme = {"max": np.max, "min": np.min}[heads](weights.astype(np.float64), axis=1)
    total = extreme.sum(axis=-1, keepdims=True)
    shares: FloatArray = extreme / np.where(total > 0, total, 1)
    return shares


def _cells(values: FloatArray) -> Columns:
    query, key = np.indices(values.shape, np.int32)
    return {"query": query.ravel(), "key": key.ravel(), "weight": values.ravel()}


def _fact(
    name: str, reduce: Reduction, by: By, rows: tuple[str, ...] = (), *, cross: bool = False, **defaults: object
) -> Fact:
    return Fact(COMPUTED[name], reduce, by, defaults, rows, cross)


FACTS: dict[str, Fact] = {
    "head_facts": Fact(
        TABLES["head_facts"],
        _of_heads,
        "head",
        {"eps": 1e-4, "drop": "sep", "weights": "attention"},
        cross=True,
        shares=True,
    ),
    "token_facts": Fact(TABLES["token_facts"], _of_tokens(token_facts), "row", cross=True),
    "token_masses": Fact(TABLES["token_masses"], _of_tokens(token_masses), "row", cross=True),
    "word_facts": Fact(TABLES["word_facts"], _of_words, "row", {"pieces": "mean", "weights": "attention"}, cross=True),
    "offset_facts": _fact("offset_facts", offset_facts, "head", reach=16),
    "pattern_facts": _fact("pattern_facts", pattern_facts, "head", (_TOKEN_PARTS,)),
    "transfer_facts": _fact("transfer_facts", transfer_facts, "head", cross=True, top=5, above=0.1),
    "streaming_facts": _fact("streaming_facts", streaming_facts, "head", first=4, recent=64),
    "grid_facts": _fact("grid_facts", grid_facts, "head", (_GRID,)),
    "grid_offset_facts": _fact("grid_offset_facts", grid_offset_facts, "row", (_GRID,), reach=3),
    "focus_facts": _fact("focus_facts", focus_facts, "head", (_TRIGGERS,)),
    "same_word_facts": _fact("same_word_facts", same_word_facts, "head", (_FORMS,), pieces="mean", seed=0),
    "alignment_facts": _fact(
        "alignment_facts", alignment_facts, "head", (_PAIRS,), property="governor", above=0.3, pieces="mean"
    ),
    "tree_facts": _fact("tree_facts", tree_facts, "head", (_ARCS,), pieces="mean", sample=20),
    "resampled_facts": _fact("resampled_facts", _resampled, "head", cross=True, size=32),
    "flow_facts": _fact("flow_facts", flow_facts, "row", (_CLASSES,), classes="special"),
    "induction_facts": _fact(
        "induction_facts", induction_facts, "row", (_TOKEN_TEXTS,), exclude_bos=False, exclude_current=False
    ),
    "received_facts": _fact("received_facts", received_facts, "row", cross=True),
    "pair_facts": _fact("pair_facts", pair_facts, "row", (_PAIRS,), property="subject_verb", pieces="mean"),
    "link_facts": _fact(
        "link_facts", link_facts, "row", (_LINKS, _TOKEN_TEXTS), level="word", pairs="all", pieces="mean"
    ),
    "mention_facts": _fact(
        "mention_facts",
        mention_facts,
        "row",
        (_MENTIONS,),
        candidates="preceding_mention_heads",
        pieces="mean",
        weights="attention",
    ),
    "pair_rows": _fact("pair_rows", pair_rows, "row", (_ARCS,), pieces="mean"),
    "rollout_facts": _fact(
        "rollout_facts", _rollout, "example", (_KEPT,), heads="mean", residual=0.5, mixing="fixed", example=0
    ),
    "flow_through": _fact("flow_through", _flow_through, "example", heads="mean", residual=0.5, example=0),
    "layer_norm_facts": Fact(
        COMPUTED["layer_norm_facts"],
        layer_norm_facts,
        "example",
        {"classes": "special"},
        (_CLASSES,),
        evidence="value_grams",
    ),
    "head_distances": _fact("head_distances", head_distances, "example", eps=1e-3, sampled=4),
}
"""Every table that is filled from maps; `defaults` name all of its parameters."""

_OF_DISTANCES = {"eps": 1e-3, "sampled": 4}
_DISTANCES = {"": Reading("head_distances", DISTANCES)}

DERIVED: dict[str, Derived] = {
    "head_pairs": Derived(MADE["head_pairs"], _DISTANCES, head_pairs, _OF_DISTANCES),
    "head_coordinates": Derived(
        MADE["head_coordinates"],
        _DISTANCES,
        head_coordinates,
        {**_OF_DISTANCES, "seed": 0, "root": False},
    ),
    "head_linkage": Derived(
        MADE["head_linkage"],
        _DISTANCES,
        head_linkage,
        {**_OF_DISTANCES, "method": "average", "root": False},
    ),
    "head_clusters": Derived(
        MADE["head_clusters"],
        _DISTANCES,
        head_clusters,
        {**_OF_DISTANCES, "method": "average", "root": False, "clusters": 8},
    ),
    "head_correlations": Derived(
        MADE["head_correlations"],
        {"": NUMBERS},
        head_correlations,
        {"x": "confidence", "y": None, "bootstrap": 1000, "seed": 0},
    ),
    "set_intervals": Derived(MADE["set_intervals"], {"": SCORES}, set_intervals, {"bootstrap": 0, "seed": 0}),
    "row_errors": Derived(MADE["row_errors"], {"": ROW_SUMS}, as_read, CHOSEN),
    "rounding_errors": Derived(MADE["rounding_errors"], {"": ROUNDING}, as_read, CHOSEN),
    "class_tests": Derived(
        MADE["class_tests"],
        STATISTICS,
        class_tests,
        {"statistic": "cls_entropy", "control": "none", "permutations": 1000, "seed": 0},
    ),
    "class_profiles": Derived(MADE["class_profiles"], STATISTICS, class_profiles, {"statistic": "cls_entropy"}),
}
"""Every table that is made from another fact table."""

__all__ = ["COMPUTED", "DERIVED", "FACTS"]
