"""This file declares the fact tables that are computed from the maps when a question asks, or kept by `refresh`.

They are no part of a segment: a store that keeps one has it as an addition, with the parameters that it was made with.
"""

import pyarrow as pa

from attnstore.format.evidence_tables import EVIDENCE_TABLES
from attnstore.format.tables import EXAMPLE, KIND, TABLES, column, per_head

_I32, _I16, _STR, _F32, _F64 = pa.int32(), pa.int16(), pa.string(), pa.float32(), pa.float64()


def _by_head(*columns: pa.Field) -> pa.Schema:
    layer = column("layer", _I16, "layer, from 0", required=True)
    head = column("head", _I16, "head, from 0", required=True)
    return pa.schema([EXAMPLE, KIND, layer, head, *columns])


def _by_row(*columns: pa.Field) -> pa.Schema:
    return pa.schema([EXAMPLE, KIND, *columns])


def _key(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return column(name, kind, meaning, required=True)


def _listed(name: str, meaning: str) -> pa.Field:
    return column(name, pa.list_(pa.field("element", _F64)), meaning)


def _weight(name: str, meaning: str) -> pa.Field:
    return per_head(name, _F32, meaning + ", 0-1")


COMPUTED: dict[str, pa.Schema] = {
    "offset_facts": _by_head(
        column("n_queries", _F64, "query tokens, special tokens included"),
        _listed("mass", "weight at each offset key - query from -reach to reach, summed over queries"),
    ),
    "pattern_facts": _by_head(
        column("vertical", _F64, "mean weight of a row on special tokens"),
        column("neighbour", _F64, "mean weight of a row on its neighbours, special keys left out"),
        column("diagonal", _F64, "mean weight of a row on itself, special keys left out"),
        column("block", _F64, "weight within the own part beyond that part's share of tokens; null for one part"),
        column("spread", _F64, "mean of row entropy / ln(visible keys)"),
    ),
    "transfer_facts": _by_head(
        column("n_queries", _F64, "query tokens, special tokens included"),
        column("effective_keys_sum", _F64, "exp(row entropy), summed over queries"),
        column("inverse_square_sum", _F64, "1 / sum of squared weights of the row, summed over queries"),
        column("top1_sum", _F64, "largest weight of a row, summed over queries"),
        column("top_sum", _F64, "sum of the `top` largest weights of a row, summed over queries"),
        column("keys_above_sum", _F64, "keys with a weight over `above`, summed over queries"),
    ),
    "streaming_facts": _by_head(
        column("n_queries", _F64, "query tokens, special tokens included"),
        column("mass_sum", _F64, "weight on the `first` first keys and those nearer than `recent`, over queries"),
    ),
    "grid_facts": _by_head(
        column("n_queries", _F64, "tokens that have a place on a grid"),
        column("distance_sum", _F64, "pixels from query to key (steps for codes), weighted and summed over queries"),
        column("distance_renormalised_sum", _F64, "the same, each row divided by its weight on the grid"),
    ),
    "focus_facts": _by_head(
        column("n_queries", _F64, "query tokens, special tokens included"),
        column("focus", _I32, "key that most queries weigh most; a trigger is one key, that of its first token"),
        column("focusing", _F64, "queries that weigh it most"),
        column("focus_sum", _F64, "weight on it, summed over queries"),
        column("trigger_sum", _F64, "weight on the tokens of a trigger, summed over queries; null without one"),
    ),
    "same_word_facts": _by_head(
        column("n_a", _F64, "words of part A that stand in part B too"),
        column("n_b", _F64, "words of part B that stand in part A too"),
        column("a_to_b_sum", _F64, "weight from such a word of A to its equals in B, summed"),
        column("b_to_a_sum", _F64, "weight from such a word of B to its equals in A, summed"),
        column("a_to_b_control_sum", _F64, "the same to as many other words of B, drawn at random"),
        column("b_to_a_control_sum", _F64, "the same to as many other words of A, drawn at random"),
    ),
    "tree_facts": _by_head(
        column("n", _F64, "words that have a governor"),
        column("correct", _F64, "of these, attached right by the maximum spanning arborescence of the head's map"),
        column("undirected_correct", _F64, "the same without direction, by the maximum spanning tree"),
    ),
    "resampled_facts": _by_head(
        column("weights", pa.list_(pa.field("element", _F32)), "the map at size x size by area averaging, by query"),
    ),
    "flow_facts": _by_row(
        _key("query_class", _STR, "class of the query tokens"),
        _key("key_class", _STR, "class of the key tokens"),
        _key("n_queries", _I32, "query tokens of that class"),
        _key("n_keys", _I32, "key tokens of that class"),
        _key("uniform", _F64, "weight that equal attention to all visible keys would give, summed"),
        per_head("mass", _F64, "weight from queries of the one class to keys of the other, summed"),
    ),
    "induction_facts": _by_row(
        _key("pattern", _STR, "previous, next, duplicate, duplicate_after or induction"),
        _key("n_queries", _I32, "query tokens, special tokens left out"),
        _key("n_pairs", _I32, "pairs of a query and a key that the pattern has"),
        column("uniform", _F64, "weight on them under equal attention to all visible keys; null where not defined"),
        column("uniform_total", _F64, "weight under equal attention that counts; null where not defined"),
        per_head("weight", _F64, "weight on these pairs, summed; null where not defined"),
        per_head("total", _F64, "weight of the queries that counts, summed; null where not defined"),
    ),
    "grid_offset_facts": _by_row(
        _key("dy", _I32, "rows down from query to key"),
        _key("dx", _I32, "columns right from query to key"),
        _key("n_queries", _I32, "query tokens on the grid that have a key there"),
        per_head("mass", _F64, "weight on these keys, summed over queries"),
    ),
    "received_facts": _by_row(
        _key("token", _I32, "key token"),
        _weight("received", "mean weight that it gets from a query"),
        _weight("received_later", "the same over the queries from itself on"),
        _weight("from_cls", "weight from [CLS]; null without one"),
        _weight("from_sep", "mean weight from [SEP]; null without one"),
    ),
    "pair_facts": _by_row(
        _key("source_word", _I32, "the one word"),
        _key("target_word", _I32, "the other word"),
        _weight("forward", "weight from the source to the target"),
        _weight("backward", "weight from the target to the source"),
    ),
    "alignment_facts": _by_head(
        column("mass", _F64, "weight between words on pairs that have the property"),
        column("total", _F64, "weight between different words"),
        column("edges", _F64, "pairs with a weight over `above`"),
        column("aligned_edges", _F64, "those of them that have the property"),
        column("n_property", _F64, "pairs that have the property"),
        column("n_pairs", _F64, "pairs of different words"),
    ),
    "link_facts": _by_row(
        _key("link", _I32, "index of the link within the example"),
        _weight("source_to_target", "largest weight from a unit of the source to one of the target"),
        _weight("target_to_source", "largest weight from a unit of the target to one of the source"),
        _weight("source_to_target_mean", "mean weight over the pairs, source to target"),
        _weight("target_to_source_mean", "mean weight over the pairs, target to source"),
    ),
    "mention_facts": _by_row(
        _key("mention", _I32, "index of the mention within the example"),
        per_head("attends_to", _I32, "candidate word that the row of its head word weighs most; null where none"),
        _weight("attends_to_weight", "that weight"),
        per_head("attended_by", _I32, "candidate word whose row weighs its head word most; null where none does"),
        _weight("attended_by_weight", "that weight"),
    ),
    "pair_rows": _by_row(
        _key("sentence", _I32, "number of the sentence within the example"),
        _key("dependent", _I32, "word whose governor is asked for"),
        _key("candidate", _I32, "word that may be it; -1 for the root"),
        _key("label", pa.bool_(), "whether it is"),
        _weight("forward", "weight from the candidate to the dependent; for the root, from the dependent to [CLS]"),
        _weight("backward", "weight from the dependent to the candidate; for the root, to [SEP]"),
    ),
    "rollout_facts": _by_row(
        _key("query", _I32, "output token"),
        _key("key", _I32, "input token"),
        column("weight", _F64, "how much of the input token reaches the output token"),
    ),
    "flow_through": _by_row(
        _key("query", _I32, "output token"),
        _key("key", _I32, "input token"),
        column("weight", _F64, "maximum flow between them through all layers, each query's divided by their sum"),
    ),
    "layer_norm_facts": _by_row(
        _key("layer", _I16, "layer, from 0"),
        _key("query_class", _STR, "class of the query tokens"),
        _key("key_class", _STR, "class of the key tokens"),
        _key("n_queries", _I32, "query tokens of that class"),
        _key("n_pairs", _I32, "pairs of a query and a key that it sees"),
        column("layer_norm_sum", _F64, "length of what all heads move together from key to query, over these pairs"),
        column("residual_norm_sum", _F64, "the same with the stream of a query that is the key itself"),
        column("residual_norm_ln_sum", _F64, "the same after the norm of the sum, scale frozen; null without one"),
    ),
    "head_distances": _by_row(
        _key("n_rows", _I32, "query rows that were compared"),
        column(
            "js",
            pa.list_(pa.field("element", _F32)),
            "Jensen-Shannon divergence in nats, summed over those rows, for every pair of heads a < b: the upper "
            "triangle row by row, heads layer-major",
        ),
    ),
}
"""Tables that a reduction fills from the maps, beyond those that ingest keeps."""


def _made(*columns: pa.Field) -> pa.Schema:
    return pa.schema([KIND, *columns])


_LAYER, _HEAD = _key("layer", _I16, "layer, from 0"), _key("head", _I16, "head, from 0")

MADE: dict[str, pa.Schema] = {
    "head_pairs": _made(
        _key("layer_a", _I16, "layer of the one head"),
        _key("head_a", _I16, "the one head"),
        _key("layer_b", _I16, "layer of the other head"),
        _key("head_b", _I16, "the other head"),
        column("js_sum", _F64, "Jensen-Shannon divergence in nats, summed over rows"),
        column("n_rows", pa.int64(), "query rows that were compared"),
        column("n_examples", pa.int64(), "examples that they come from"),
    ),
    "head_coordinates": _made(
        _LAYER,
        _HEAD,
        column("x", _F64, "first coordinate"),
        column("y", _F64, "second coordinate"),
        column("stress", _F64, "Kruskal's stress-1 of the whole embedding, 0 for a perfect one"),
    ),
    "head_linkage": _made(
        _key("step", _I32, "merge, from 0"),
        column("a", _I32, "node that is merged: a head below layers * heads (layer-major), else the merge of a step"),
        column("b", _I32, "node that it is merged with"),
        column("distance", _F64, "distance at which they are merged, in nats a row"),
        column("n_heads", _I32, "heads below the merge"),
    ),
    "head_clusters": _made(_LAYER, _HEAD, column("cluster", _I32, "number of the cluster, from 0, largest first")),
    "head_correlations": pa.schema(
        [
            KIND,
            _key("x", _STR, "number of `head_numbers`"),
            _key("y", _STR, "another"),
            column("spearman", _F64, "rank correlation over the heads that have both; null where one is constant"),
            column("low", _F64, "2.5 percentile of it over draws of the heads; null without draws"),
            column("high", _F64, "97.5 percentile"),
            column("pearson", _F64, "correlation of the numbers themselves; null where one is constant"),
            column("n", pa.int64(), "heads"),
        ]
    ),
    "set_intervals": pa.schema(
        [
            _key("head_set", _STR, "set of heads that is off"),
            _key("metric", _STR, "metric that is a mean over examples"),
            column("delta_low", _F64, "2.5 percentile of value - baseline over draws of the examples"),
            column("delta_high", _F64, "97.5 percentile"),
        ]
    ),
    "row_errors": _made(
        _LAYER,
        _HEAD,
        column("largest_error", _F64, "largest difference of a stored row's sum from 1"),
        column("mean_error", _F64, "mean of it over rows"),
        column("n", pa.int64(), "rows"),
    ),
    "rounding_errors": _made(
        _LAYER,
        _HEAD,
        column("largest_difference", _F64, "largest difference of a row's largest stored weight from its fact"),
        column("mean_difference", _F64, "mean of it over rows"),
        column("n", pa.int64(), "rows"),
    ),
    "class_tests": _made(
        _LAYER,
        _HEAD,
        column("eta2", _F64, "share of the statistic's variance that lies between classes; null for a constant"),
        column("eta2_chance", _F64, "what shuffled labels give on average"),
        column("h", _F64, "Kruskal-Wallis H, corrected for ties; null for a constant"),
        column("p", _F64, "share of the shuffled labels with as large an H, the given ones counted"),
        column("q", _F64, "p after Benjamini and Hochberg over the heads of the kind"),
        column("best_class", _STR, "class that one half of the examples tells best from the others"),
        column("direction", _STR, "higher or lower: how it differs there"),
        column("auroc", _F64, "how well it is told from the others so, in the other half"),
        column("n", pa.int64(), "labelled examples with a value"),
        column("n_classes", pa.int64(), "their classes"),
    ),
    "class_profiles": _made(
        _LAYER,
        _HEAD,
        _key("class", _STR, "label"),
        column("mean", _F64, "mean of the statistic over the examples of the class"),
        column("d", _F64, "that mean less the mean of all, in standard deviations of all; null for a constant"),
        column("n", pa.int64(), "examples of the class"),
    ),
}
"""Tables that are made from other facts while a question is answered, and never stored."""

MEASURED: dict[str, pa.Schema] = {
    "kept_facts": _by_head(
        column("n_queries", _F64, "query tokens, special tokens included"),
        column("kept_sum", _F64, "weight that was kept, before rounding, summed over rows"),
        column("rest_sum", _F64, "weight that was not kept, summed over rows"),
        column("rest_max", _F64, "weight that was not kept of the row that lost most, 0-1"),
        column("largest_cut", _F64, "largest single weight that was not kept, 0-1"),
    ),
}
"""Tables of a segment that say what a store of the largest weights leaves out; no other store has them."""

GIVEN: dict[str, pa.Schema] = {
    "pattern_labels": _by_head(
        _key("pattern", _STR, "pattern of the map"),
        column("annotator", _STR, "who or what gave it"),
    ),
}
"""Tables of annotations that only an addition has."""

STORED: dict[str, pa.Schema] = {**TABLES, **COMPUTED, **MEASURED, **GIVEN, **EVIDENCE_TABLES}
"""Every table that a store may hold."""

DECLARED: dict[str, pa.Schema] = {**STORED, **MADE}
"""Every table that SQL may name below `stored`, also where a store has no file of it."""

ANNOTATIONS = frozenset({"tokens", "words", "mentions", "links"})

FROM_MAPS = frozenset(
    {"offset_facts", "transfer_facts", "streaming_facts", "received_facts", "resampled_facts", "head_distances"}
)
"""Computed tables that need nothing but the maps. The others are out of date once an annotation is replaced."""
