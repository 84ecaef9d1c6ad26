"""This file declares every Parquet table of a store: each column with its type, unit and meaning."""

import pyarrow as pa


def column(name: str, kind: pa.DataType, meaning: str, *, required: bool = False) -> pa.Field:
    """A column of a table, with what it means; `required` where no row may leave it empty."""
    return pa.field(name, kind, nullable=not required, metadata={"meaning": meaning})


_I32, _I16, _STR, _BOOL, _F64 = pa.int32(), pa.int16(), pa.string(), pa.bool_(), pa.float64()
EXAMPLE = column("example", _I32, "number of the example, from 0 over the whole store", required=True)
KIND = column("kind", _STR, "attention kind: encoder, decoder or cross", required=True)
_SIDE = column("side", _STR, "source (what the model reads) or target (what its decoder reads)", required=True)
_PER_HEAD = "; a list over heads, layer-major: entry layer * heads + head"


def per_head(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    """A column that holds one value for each head."""
    return column(name, pa.list_(pa.field("element", kind)), meaning + _PER_HEAD)


EXAMPLES = pa.schema(
    [
        EXAMPLE,
        column("name", _STR, "name given by the corpus", required=True),
        column("text", _STR, "text of part A"),
        column("second", _STR, "text of part B of a pair"),
        column("target", _STR, "text of the decoder"),
        column("document", _STR, "document given by the corpus; clusters of mentions are unique within it"),
        column("label", _STR, "label given by the corpus"),
        column("split", _STR, "split given by the corpus"),
        column("pair_id", _STR, "joins examples that belong together, such as clean and triggered"),
        column("condition", _STR, "role of the example in its pair"),
        column("n_tokens", _I32, "source tokens, special tokens included", required=True),
        column("n_target_tokens", _I32, "target tokens, special tokens included"),
        column("n_words", _I32, "source words", required=True),
        column("n_parts", _I32, "1, or 2 for a pair", required=True),
        column("cut", _STR, "whole, window or truncated", required=True),
        column("origin", _STR, "file and line in the corpus"),
        column("segment", _I32, "segment that holds the example", required=True),
        column("cell_encoder", pa.int64(), "first cell of its encoder map within the segment"),
        column("cell_decoder", pa.int64(), "first cell of its decoder map within the segment"),
        column("cell_cross", pa.int64(), "first cell of its cross map within the segment"),
        column("image_height", _I32, "pixels of the image as the model reads it; null for a text"),
        column("image_width", _I32, "pixels of the image as the model reads it; null for a text"),
        column("patch_height", _I32, "pixels of a patch; null for a text"),
        column("patch_width", _I32, "pixels of a patch; null for a text"),
        column("luminance", _F64, "mean of the grey pixels of the image, from 0 (black) to 1; null for a text"),
    ]
)

TOKENS = pa.schema(
    [
        EXAMPLE,
        _SIDE,
        column("token", _I32, "position, from 0, special tokens included", required=True),
        column("text", _STR, "the tokenizer's own spelling of the token"),
        column("token_id", _I32, "number in the tokenizer's vocabulary", required=True),
        column("word", _I32, "index of the word it belongs to; null for none"),
        column("part", _I32, "0 in part A, 1 in part B; null for a special token"),
        column("type_id", _I32, "token type that was fed to the model; 0 where it takes none"),
        column("special", _STR, "null, or cls, sep, bos, eos, mask, pad, other: never from the text"),
        column("punct", _BOOL, "exactly '.' or ','", required=True),
        column("start_char", _I32, "first character in the text of its part"),
        column("end_char", _I32, "end in the text of its part, exclusive"),
        column("row", _I32, "row of the grid on which patches or codes of an image lie; null for others"),
        column("col", _I32, "column of that grid; null for others"),
        column("trigger", _BOOL, "part of a trigger that was planted in the text; null where the corpus has none"),
    ]
)

WORDS = pa.schema(
    [
        EXAMPLE,
        _SIDE,
        column("word", _I32, "index, from 0 over both parts", required=True),
        column("form", _STR, "the word as written"),
        column("lemma", _STR, "dictionary form"),
        column("upos", _STR, "universal part of speech"),
        column("xpos", _STR, "part of speech of the treebank's own scheme"),
        column("governor", _I32, "index of the syntactic head; null for the root"),
        column("deprel", _STR, "relation to the governor; null where not annotated or cut off"),
        column("derived", _BOOL, "true for a relation that was derived, not annotated", required=True),
        column("sentence", _I32, "number of the sentence within the example", required=True),
        column("part", _I32, "0 in part A, 1 in part B", required=True),
        column("start_char", _I32, "first character in the text of its part"),
        column("end_char", _I32, "end in the text of its part, exclusive"),
        column("n_tokens", _I32, "tokens that belong to it; 0 where none does", required=True),
        column("aligned", _STR, "exact, shared (a token covers more than this word) or none", required=True),
    ]
)

MENTIONS = pa.schema(
    [
        EXAMPLE,
        column("mention", _I32, "index within the example", required=True),
        column("cluster", _STR, "entity within the example's document", required=True),
        column("start_word", _I32, "first word", required=True),
        column("end_word", _I32, "end, exclusive", required=True),
        column("head_word", _I32, "the mention's syntactic head", required=True),
        column("type", _STR, "pronoun, proper or nominal"),
    ]
)

LINKS = pa.schema(
    [
        EXAMPLE,
        column("link", _I32, "index within the example", required=True),
        column("relation", _STR, "name of the relation", required=True),
        column("source_start_word", _I32, "first word of the source span", required=True),
        column("source_end_word", _I32, "end of the source span, exclusive", required=True),
        column("target_start_word", _I32, "first word of the target span", required=True),
        column("target_end_word", _I32, "end of the target span, exclusive", required=True),
        column("core", _BOOL, "a core element of the frame; null where not told"),
    ]
)

TOKEN_FACTS = pa.schema(
    [
        EXAMPLE,
        KIND,
        column("token", _I32, "query token", required=True),
        per_head("argmax", _I32, "key token of the largest weight; the lowest on a tie"),
        per_head("max", pa.float16(), "largest weight of the row, 0-1"),
        per_head("entropy_nats", pa.float16(), "entropy of the row in nats, without smoothing"),
    ]
)

TOKEN_MASSES = pa.schema(
    [
        EXAMPLE,
        KIND,
        column("token", _I32, "query token", required=True),
        per_head("self_mass", pa.float16(), "weight to itself, 0-1; NaN in cross maps"),
        per_head("previous_mass", pa.float16(), "weight to the preceding token, 0-1; NaN where there is none"),
        per_head("next_mass", pa.float16(), "weight to the following token, 0-1; NaN where there is none"),
        per_head("cls_mass", pa.float16(), "weight to [CLS], 0-1"),
        per_head("sep_mass", pa.float16(), "weight to every [SEP] together, 0-1"),
        per_head("punct_mass", pa.float16(), "weight to tokens that are exactly '.' or ',', 0-1"),
    ]
)

WORD_FACTS = pa.schema(
    [
        EXAMPLE,
        KIND,
        column("word", _I32, "the word", required=True),
        per_head("attends_to", _I32, "other word that its row weighs most; null where it weighs none"),
        per_head("attends_to_weight", pa.float16(), "that weight, 0-1"),
        per_head("attended_by", _I32, "other word whose row weighs this one most; null where none does"),
        per_head("attended_by_weight", pa.float16(), "that weight, 0-1"),
    ]
)


def _sum(name: str, meaning: str) -> pa.Field:
    return column(name, _F64, meaning)


HEAD_FACTS = pa.schema(
    [
        EXAMPLE,
        KIND,
        column("layer", _I16, "layer, from 0", required=True),
        column("head", _I16, "head, from 0", required=True),
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
        column("name", _STR, "name given by the corpus", required=True),
        column("reason", _STR, "why it is not in the store", required=True),
        column("origin", _STR, "file and line in the corpus"),
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

ADDED: dict[str, tuple[str, ...]] = {
    "links": ("core",),
    "tokens": ("row", "col", "trigger"),
    "examples": ("image_height", "image_width", "patch_height", "patch_width", "luminance"),
}
"""Columns that came after the first stores were written: a file without them is whole, and they are null."""
