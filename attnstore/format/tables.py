"""This file declares every Parquet table of a store: each column with its type, unit and meaning."""

import pyarrow as pa


def _column(name: str, kind: pa.DataType, meaning: str, *, required: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not required, metadata={"meaning": meaning})


_I32, _I16, _STR, _BOOL, _F64 = pa.int32(), pa.int16(), pa.string(), pa.bool_(), pa.float64()
_EXAMPLE = _column("example", _I32, "number of the example, from 0 over the whole store", required=True)
_KIND = _column("kind", _STR, "attention kind: encoder, decoder or cross", required=True)
_SIDE = _column("side", _STR, "source (what the model reads) or target (what its decoder reads)", required=True)
_PER_HEAD = "; a list over heads, layer-major: entry layer * heads + head"


def _per_head(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return _column(name, pa.list_(pa.field("element", kind)), meaning + _PER_HEAD)


EXAMPLES = pa.schema(
    [
        _EXAMPLE,
        _column("name", _STR, "name given by the corpus", required=True),
        _column("text", _STR, "text of part A"),
        _column("second", _STR, "text of part B of a pair"),
        _column("target", _STR, "text of the decoder"),
        _column("document", _STR, "document given by the corpus; clusters of mentions are unique within it"),
        _column("label", _STR, "label given by the corpus"),
        _column("split", _STR, "split given by the corpus"),
        _column("pair_id", _STR, "joins examples that belong together, such as clean and triggered"),
        _column("condition", _STR, "role of the example in its pair"),
        _column("n_tokens", _I32, "source tokens, special tokens included", required=True),
        _column("n_target_tokens", _I32, "target tokens, special tokens included"),
        _column("n_words", _I32, "source words", required=True),
        _column("n_parts", _I32, "1, or 2 for a pair", required=True),
        _column("cut", _STR, "whole, window or truncated", required=True),
        _column("origin", _STR, "file and line in the corpus"),
        _column("segment", _I32, "segment that holds the example", required=True),
        _column("cell_encoder", pa.int64(), "first cell of its encoder map within the segment"),
        _column("cell_decoder", pa.int64(), "first cell of its decoder map within the segment"),
        _column("cell_cross", pa.int64(), "first cell of its cross map within the segment"),
    ]
)

TOKENS = pa.schema(
    [
        _EXAMPLE,
        _SIDE,
        _column("token", _I32, "position, from 0, special tokens included", required=True),
        _column("text", _STR, "the tokenizer's own spelling of the token"),
        _column("token_id", _I32, "number in the tokenizer's vocabulary", required=True),
        _column("word", _I32, "index of the word it belongs to; null for none"),
        _column("part", _I32, "0 in part A, 1 in part B; null for a special token"),
        _column("type_id", _I32, "token type that was fed to the model; 0 where it takes none"),
        _column("special", _STR, "null, or cls, sep, bos, eos, mask, pad, other: never from the text"),
        _column("punct", _BOOL, "exactly '.' or ','", required=True),
        _column("start_char", _I32, "first character in the text of its part"),
        _column("end_char", _I32, "end in the text of its part, exclusive"),
    ]
)

WORDS = pa.schema(
    [
        _EXAMPLE,
        _SIDE,
        _column("word", _I32, "index, from 0 over both parts", required=True),
        _column("form", _STR, "the word as written"),
        _column("lemma", _STR, "dictionary form"),
        _column("upos", _STR, "universal part of speech"),
        _column("xpos", _STR, "part of speech of the treebank's own scheme"),
        _column("governor", _I32, "index of the syntactic head; null for the root"),
        _column("deprel", _STR, "relation to the governor; null where not annotated or cut off"),
        _column("derived", _BOOL, "true for a relation that was derived, not annotated", required=True),
        _column("sentence", _I32, "number of the sentence within the example", required=True),
        _column("part", _I32, "0 in part A, 1 in part B", required=True),
        _column("start_char", _I32, "first character in the text of its part"),
        _column("end_char", _I32, "end in the text of its part, exclusive"),
        _column("n_tokens", _I32, "tokens that belong to it; 0 where none does", required=True),
        _column("aligned", _STR, "exact, shared (a token covers more than this word) or none", required=True),
    ]
)

MENTIONS = pa.schema(
    [
        _EXAMPLE,
        _column("mention", _I32, "index within the example", required=True),
        _column("cluster", _STR, "entity within the example's document", required=True),
        _column("start_word", _I32, "first word", required=True),
        _column("end_word", _I32, "end, exclusive", required=True),
        _column("head_word", _I32, "the mention's syntactic head", required=True),
        _column("type", _STR, "pronoun, proper or nominal"),
    ]
)

LINKS = pa.schema(
    [
        _EXAMPLE,
        _column("link", _I32, "index within the example", required=True),
        _column("relation", _STR, "name of the relation", required=True),
        _column("source_start_word", _I32, "first word of the source span", required=True),
        _column("source_end_word", _I32, "end of the source span, exclusive", required=True),
        _column("target_start_word", _I32, "first word of the target span", required=True),
        _column("target_end_word", _I32, "end of the target span, exclusive", required=True),
    ]
)

TOKEN_FACTS = pa.schema(
    [
        _EXAMPLE,
        _KIND,
        _column("token", _I32, "query token", required=True),
        _per_head("argmax", _I32, "key token of the largest weight; the lowest on a tie"),
        _per_head("max", pa.float16(), "largest weight of the row, 0-1"),
        _per_head("entropy_nats", pa.float16(), "entropy of the row in nats, without smoothing"),
    ]
)

TOKEN_MASSES = pa.schema(
    [
        _EXAMPLE,
        _KIND,
        _column("token", _I32, "query token", required=True),
        _per_head("self_mass", pa.float16(), "weight to itself, 0-1; NaN in cross maps"),
        _per_head("previous_mass", pa.float16(), "weight to the preceding token, 0-1; NaN where there is none"),
        _per_head("next_mass", pa.float16(), "weight to the following token, 0-1; NaN where there is none"),
        _per_head("cls_mass", pa.float16(), "weight to [CLS], 0-1"),
        _per_head("sep_mass", pa.float16(), "weight to every [SEP] together, 0-1"),
        _per_head("punct_mass", pa.float16(), "weight to tokens that are exactly '.' or ',', 0-1"),
    ]
)

WORD_FACTS = pa.schema(
    [
        _EXAMPLE,
        _KIND,
        _column("word", _I32, "the word", required=True),
        _per_head("attends_to", _I32, "other word that its row weighs most; null where it weighs none"),
        _per_head("attends_to_weight", pa.float16(), "that weight, 0-1"),
        _per_head("attended_by", _I32, "other word whose row weighs this one most; null where none does"),
        _per_head("attended_by_weight", pa.float16(), "that weight, 0-1"),
    ]
)


def _sum(name: str, meaning: str) -> pa.Field:
    return _column(name, _F64, meaning)


HEAD_FACTS = pa.schema(
    [
        _EXAMPLE,
        _KIND,
        _column("layer", _I16, "layer, from 0", required=True),
        _column("head", _I16, "head, from 0", required=True),
        _sum("n_queries", "query tokens, special tokens included"),
        _sum("n_keys", "key tokens, special tokens included"),
        _sum("n_cls", "queries that are [CLS]"),
        _sum("n_sep", "queries that are [SEP]"),
        _sum("self_sum", "weight from each query to itself, summed over queries; null in cross maps"),
        _sum("next_sum", "weight to the following token; null in cross maps"),
        _sum("previous_sum", "weight to the preceding token; null in cross maps"),
        _sum("cls_sum", "weight to [CLS]"),
        _sum("sep_sum", "weight to every [SEP] together"),
        _sum("punct_sum", "weight to tokens that are exactly '.' or ','"),
        _sum("sep_sep_sum", "weight from [SEP] queries to [SEP] keys"),
        _sum("rest_sep_sum", "weight from queries other than [SEP] to [SEP] keys"),
        _sum(
            "distance_sum",
            "|query - key| in tokens, weighted by attention, summed; null in cross maps",
        ),
        _sum("entropy_sum", "row entropies in nats, smoothed with eps, summed over queries"),
        _sum("entropy_exact_sum", "row entropies in nats without smoothing"),
        _sum("entropy_normalised_sum", "row entropy / ln(visible keys), over rows that see two keys or more"),
        _sum("n_normalised", "rows that see two keys or more"),
        _sum("log_keys_sum", "ln(visible keys), summed over queries: the entropy of uniform attention"),
        _sum("cls_entropy_sum", "smoothed entropy of the [CLS] rows in nats"),
        _sum("cls_entropy_exact_sum", "entropy of the [CLS] rows in nats without smoothing"),
        _sum("max_sum", "largest weight of each row"),
        _sum("max_drop_keys_sum", "the same among the keys that are not dropped"),
        _sum("max_drop_both_sum", "the same over the queries that are not dropped either"),
        _sum("n_drop_both", "queries that are not dropped"),
        _sum("max_drop_renormalised_sum", "largest weight among kept keys / their sum, over all queries"),
    ]
)

SKIPPED = pa.schema(
    [
        _column("name", _STR, "name given by the corpus", required=True),
        _column("reason", _STR, "why it is not in the store", required=True),
        _column("origin", _STR, "file and line in the corpus"),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "examples": EXAMPLES,
    "tokens": TOKENS,
    "words": WORDS,
    "mentions": MENTIONS,
    "links": LINKS,
    "token_facts": TOKEN_FACTS,
    "token_masses": TOKEN_MASSES,
    "word_facts": WORD_FACTS,
    "head_facts": HEAD_FACTS,
    "skipped": SKIPPED,
}
"""Every table by name, in the order in which a segment writes them."""
